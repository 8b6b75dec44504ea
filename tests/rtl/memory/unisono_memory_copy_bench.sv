// Test bench: a reader whose words go to a writer, on one memory.

module unisono_memory_copy_bench #(
  parameter int unsigned DataBytes   = 64,
  parameter int unsigned BurstBeats  = 64,
  parameter int unsigned Outstanding = 16,
  parameter int unsigned BufferWords = 512,
  localparam int unsigned IdWidth    = $clog2(Outstanding)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   read_valid_i,
  output logic                   read_ready_o,
  input  logic [63:0]            read_address_i,
  input  logic [31:0]            read_bytes_i,
  input  logic                   write_valid_i,
  output logic                   write_ready_o,
  input  logic [63:0]            write_address_i,
  input  logic [31:0]            write_bytes_i,
  input  logic [15:0]            write_user_i,
  // Holds back words between reader and writer.
  input  logic                   pause_i,
  output logic                   done_valid_o,
  input  logic                   done_ready_i,
  output logic [15:0]            done_user_o,
  output logic                   done_error_o,
  output logic                   read_error_o,

  output logic [IdWidth-1:0]     m_axi_arid,
  output logic [63:0]            m_axi_araddr,
  output logic [7:0]             m_axi_arlen,
  output logic [2:0]             m_axi_arsize,
  output logic [1:0]             m_axi_arburst,
  output logic                   m_axi_arvalid,
  input  logic                   m_axi_arready,
  input  logic [IdWidth-1:0]     m_axi_rid,
  input  logic [DataBytes*8-1:0] m_axi_rdata,
  input  logic [1:0]             m_axi_rresp,
  input  logic                   m_axi_rlast,
  input  logic                   m_axi_rvalid,
  output logic                   m_axi_rready,
  output logic [IdWidth-1:0]     m_axi_awid,
  output logic [63:0]            m_axi_awaddr,
  output logic [7:0]             m_axi_awlen,
  output logic [2:0]             m_axi_awsize,
  output logic [1:0]             m_axi_awburst,
  output logic                   m_axi_awvalid,
  input  logic                   m_axi_awready,
  output logic [DataBytes*8-1:0] m_axi_wdata,
  output logic [DataBytes-1:0]   m_axi_wstrb,
  output logic                   m_axi_wlast,
  output logic                   m_axi_wvalid,
  input  logic                   m_axi_wready,
  input  logic [IdWidth-1:0]     m_axi_bid,
  input  logic [1:0]             m_axi_bresp,
  input  logic                   m_axi_bvalid,
  output logic                   m_axi_bready
);

  logic                   valid, ready, last, error;
  logic [DataBytes*8-1:0] data;
  logic [DataBytes-1:0]   keep;
  logic                   unused_user;

  // Once a word is offered to the writer, the offer stays.
  logic open_q, open;
  assign open = !pause_i || open_q;
  always_ff @(posedge clk_i) begin
    open_q <= rst_ni && open && valid && !ready;
  end

  unisono_memory_read #(
    .DataBytes  (DataBytes),
    .UserWidth  (1),
    .BurstBeats (BurstBeats),
    .Outstanding(Outstanding),
    .BufferWords(BufferWords)
  ) u_read (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (read_valid_i),
    .cmd_ready_o  (read_ready_o),
    .cmd_address_i(read_address_i),
    .cmd_bytes_i  (read_bytes_i),
    .cmd_user_i   (1'b0),
    .out_valid_o  (valid),
    .out_ready_i  (ready && open),
    .out_data_o   (data),
    .out_keep_o   (keep),
    .out_last_o   (last),
    .out_user_o   (unused_user),
    .out_error_o  (error),
    .m_axi_arid,
    .m_axi_araddr,
    .m_axi_arlen,
    .m_axi_arsize,
    .m_axi_arburst,
    .m_axi_arvalid,
    .m_axi_arready,
    .m_axi_rid,
    .m_axi_rdata,
    .m_axi_rresp,
    .m_axi_rlast,
    .m_axi_rvalid,
    .m_axi_rready
  );

  assign read_error_o = valid && ready && open && last && error;

  unisono_memory_write #(
    .DataBytes  (DataBytes),
    .UserWidth  (16),
    .BurstBeats (BurstBeats),
    .Outstanding(Outstanding),
    .BufferWords(BufferWords)
  ) u_write (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (write_valid_i),
    .cmd_ready_o  (write_ready_o),
    .cmd_address_i(write_address_i),
    .cmd_bytes_i  (write_bytes_i),
    .cmd_user_i   (write_user_i),
    .in_valid_i   (valid && open),
    .in_ready_o   (ready),
    .in_data_i    (data),
    .in_keep_i    (keep),
    .in_last_i    (last),
    .done_valid_o,
    .done_ready_i,
    .done_user_o,
    .done_error_o,
    .m_axi_awid,
    .m_axi_awaddr,
    .m_axi_awlen,
    .m_axi_awsize,
    .m_axi_awburst,
    .m_axi_awvalid,
    .m_axi_awready,
    .m_axi_wdata,
    .m_axi_wstrb,
    .m_axi_wlast,
    .m_axi_wvalid,
    .m_axi_wready,
    .m_axi_bid,
    .m_axi_bresp,
    .m_axi_bvalid,
    .m_axi_bready
  );

endmodule
