// Test bench: readers and writers on the channels of both crossbars.

module unisono_memory_crossbar_bench #(
  parameter int unsigned Readers         = 3,
  parameter int unsigned Writers         = 2,
  parameter int unsigned Channels        = 2,
  parameter int unsigned DataBytes       = 16,
  parameter int unsigned AddressWidth    = 32,
  parameter int unsigned UserWidth       = 8,
  parameter int unsigned BurstBeats      = 16,
  parameter int unsigned InterleaveBytes = 256,
  localparam int unsigned Outstanding    = 8,
  localparam int unsigned IdWidth        = $clog2(Outstanding),
  localparam int unsigned ReadIdWidth    = IdWidth + (Readers > 1 ? $clog2(Readers) : 1),
  localparam int unsigned WriteIdWidth   = IdWidth + (Writers > 1 ? $clog2(Writers) : 1)
) (
  input  logic                                  clk_i,
  input  logic                                  rst_ni,

  input  logic [Readers-1:0]                    read_valid_i,
  output logic [Readers-1:0]                    read_ready_o,
  input  logic [Readers-1:0][AddressWidth-1:0]  read_address_i,
  input  logic [Readers-1:0][31:0]              read_bytes_i,
  input  logic [Readers-1:0][UserWidth-1:0]     read_user_i,
  output logic [Readers-1:0]                    out_valid_o,
  input  logic [Readers-1:0]                    out_ready_i,
  output logic [Readers-1:0][DataBytes*8-1:0]   out_data_o,
  output logic [Readers-1:0][DataBytes-1:0]     out_keep_o,
  output logic [Readers-1:0]                    out_last_o,
  output logic [Readers-1:0][UserWidth-1:0]     out_user_o,
  output logic [Readers-1:0]                    out_error_o,

  input  logic [Writers-1:0]                    write_valid_i,
  output logic [Writers-1:0]                    write_ready_o,
  input  logic [Writers-1:0][AddressWidth-1:0]  write_address_i,
  input  logic [Writers-1:0][31:0]              write_bytes_i,
  input  logic [Writers-1:0][UserWidth-1:0]     write_user_i,
  input  logic [Writers-1:0]                    in_valid_i,
  output logic [Writers-1:0]                    in_ready_o,
  input  logic [Writers-1:0][DataBytes*8-1:0]   in_data_i,
  input  logic [Writers-1:0][DataBytes-1:0]     in_keep_i,
  input  logic [Writers-1:0]                    in_last_i,
  output logic [Writers-1:0]                    done_valid_o,
  input  logic [Writers-1:0]                    done_ready_i,
  output logic [Writers-1:0][UserWidth-1:0]     done_user_o,
  output logic [Writers-1:0]                    done_error_o,

  output logic [Channels-1:0][ReadIdWidth-1:0]  m_axi_arid,
  output logic [Channels-1:0][AddressWidth-1:0] m_axi_araddr,
  output logic [Channels-1:0][7:0]              m_axi_arlen,
  output logic [Channels-1:0][2:0]              m_axi_arsize,
  output logic [Channels-1:0][1:0]              m_axi_arburst,
  output logic [Channels-1:0]                   m_axi_arvalid,
  input  logic [Channels-1:0]                   m_axi_arready,
  input  logic [Channels-1:0][ReadIdWidth-1:0]  m_axi_rid,
  input  logic [Channels-1:0][DataBytes*8-1:0]  m_axi_rdata,
  input  logic [Channels-1:0][1:0]              m_axi_rresp,
  input  logic [Channels-1:0]                   m_axi_rlast,
  input  logic [Channels-1:0]                   m_axi_rvalid,
  output logic [Channels-1:0]                   m_axi_rready,
  output logic [Channels-1:0][WriteIdWidth-1:0] m_axi_awid,
  output logic [Channels-1:0][AddressWidth-1:0] m_axi_awaddr,
  output logic [Channels-1:0][7:0]              m_axi_awlen,
  output logic [Channels-1:0][2:0]              m_axi_awsize,
  output logic [Channels-1:0][1:0]              m_axi_awburst,
  output logic [Channels-1:0]                   m_axi_awvalid,
  input  logic [Channels-1:0]                   m_axi_awready,
  output logic [Channels-1:0][DataBytes*8-1:0]  m_axi_wdata,
  output logic [Channels-1:0][DataBytes-1:0]    m_axi_wstrb,
  output logic [Channels-1:0]                   m_axi_wlast,
  output logic [Channels-1:0]                   m_axi_wvalid,
  input  logic [Channels-1:0]                   m_axi_wready,
  input  logic [Channels-1:0][WriteIdWidth-1:0] m_axi_bid,
  input  logic [Channels-1:0][1:0]              m_axi_bresp,
  input  logic [Channels-1:0]                   m_axi_bvalid,
  output logic [Channels-1:0]                   m_axi_bready
);

  logic [Readers-1:0][IdWidth-1:0]      arid, rid;
  logic [Readers-1:0][AddressWidth-1:0] araddr;
  logic [Readers-1:0][7:0]              arlen;
  logic [Readers-1:0]                   arvalid, arready, rlast, rvalid, rready;
  logic [Readers-1:0][DataBytes*8-1:0]  rdata;
  logic [Readers-1:0][1:0]              rresp;
  logic [Readers-1:0][2:0]              unused_arsize;
  logic [Readers-1:0][1:0]              unused_arburst;

  unisono_memory_read #(
    .DataBytes(DataBytes),
    .AddressWidth(AddressWidth),
    .UserWidth(UserWidth),
    .BurstBeats(BurstBeats),
    .Outstanding(Outstanding),
    .BufferWords(BurstBeats * 4)
  ) u_read [Readers-1:0] (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (read_valid_i),
    .cmd_ready_o  (read_ready_o),
    .cmd_address_i(read_address_i),
    .cmd_bytes_i  (read_bytes_i),
    .cmd_user_i   (read_user_i),
    .out_valid_o  (out_valid_o),
    .out_ready_i  (out_ready_i),
    .out_data_o   (out_data_o),
    .out_keep_o   (out_keep_o),
    .out_last_o   (out_last_o),
    .out_user_o   (out_user_o),
    .out_error_o  (out_error_o),
    .m_axi_arid   (arid),
    .m_axi_araddr (araddr),
    .m_axi_arlen  (arlen),
    .m_axi_arsize (unused_arsize),
    .m_axi_arburst(unused_arburst),
    .m_axi_arvalid(arvalid),
    .m_axi_arready(arready),
    .m_axi_rid    (rid),
    .m_axi_rdata  (rdata),
    .m_axi_rresp  (rresp),
    .m_axi_rlast  (rlast),
    .m_axi_rvalid (rvalid),
    .m_axi_rready (rready)
  );

  unisono_memory_crossbar_read #(
    .Readers(Readers),
    .Channels(Channels),
    .DataBytes(DataBytes),
    .AddressWidth(AddressWidth),
    .IdWidth(IdWidth),
    .InterleaveBytes(InterleaveBytes)
  ) u_crossbar_read (
    .clk_i,
    .rst_ni,
    .s_axi_arid   (arid),
    .s_axi_araddr (araddr),
    .s_axi_arlen  (arlen),
    .s_axi_arvalid(arvalid),
    .s_axi_arready(arready),
    .s_axi_rid    (rid),
    .s_axi_rdata  (rdata),
    .s_axi_rresp  (rresp),
    .s_axi_rlast  (rlast),
    .s_axi_rvalid (rvalid),
    .s_axi_rready (rready),
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

  logic [Writers-1:0][IdWidth-1:0]      awid, bid;
  logic [Writers-1:0][AddressWidth-1:0] awaddr;
  logic [Writers-1:0][7:0]              awlen;
  logic [Writers-1:0]                   awvalid, awready, wlast, wvalid, wready, bvalid, bready;
  logic [Writers-1:0][DataBytes*8-1:0]  wdata;
  logic [Writers-1:0][DataBytes-1:0]    wstrb;
  logic [Writers-1:0][1:0]              bresp;
  logic [Writers-1:0][2:0]              unused_awsize;
  logic [Writers-1:0][1:0]              unused_awburst;

  unisono_memory_write #(
    .DataBytes(DataBytes),
    .AddressWidth(AddressWidth),
    .UserWidth(UserWidth),
    .BurstBeats(BurstBeats),
    .Outstanding(Outstanding),
    .BufferWords(BurstBeats * 4)
  ) u_write [Writers-1:0] (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (write_valid_i),
    .cmd_ready_o  (write_ready_o),
    .cmd_address_i(write_address_i),
    .cmd_bytes_i  (write_bytes_i),
    .cmd_user_i   (write_user_i),
    .in_valid_i   (in_valid_i),
    .in_ready_o   (in_ready_o),
    .in_data_i    (in_data_i),
    .in_keep_i    (in_keep_i),
    .in_last_i    (in_last_i),
    .done_valid_o (done_valid_o),
    .done_ready_i (done_ready_i),
    .done_user_o  (done_user_o),
    .done_error_o (done_error_o),
    .m_axi_awid   (awid),
    .m_axi_awaddr (awaddr),
    .m_axi_awlen  (awlen),
    .m_axi_awsize (unused_awsize),
    .m_axi_awburst(unused_awburst),
    .m_axi_awvalid(awvalid),
    .m_axi_awready(awready),
    .m_axi_wdata  (wdata),
    .m_axi_wstrb  (wstrb),
    .m_axi_wlast  (wlast),
    .m_axi_wvalid (wvalid),
    .m_axi_wready (wready),
    .m_axi_bid    (bid),
    .m_axi_bresp  (bresp),
    .m_axi_bvalid (bvalid),
    .m_axi_bready (bready)
  );

  unisono_memory_crossbar_write #(
    .Writers(Writers),
    .Channels(Channels),
    .DataBytes(DataBytes),
    .AddressWidth(AddressWidth),
    .IdWidth(IdWidth),
    .InterleaveBytes(InterleaveBytes)
  ) u_crossbar_write (
    .clk_i,
    .rst_ni,
    .s_axi_awid   (awid),
    .s_axi_awaddr (awaddr),
    .s_axi_awlen  (awlen),
    .s_axi_awvalid(awvalid),
    .s_axi_awready(awready),
    .s_axi_wdata  (wdata),
    .s_axi_wstrb  (wstrb),
    .s_axi_wlast  (wlast),
    .s_axi_wvalid (wvalid),
    .s_axi_wready (wready),
    .s_axi_bid    (bid),
    .s_axi_bresp  (bresp),
    .s_axi_bvalid (bvalid),
    .s_axi_bready (bready),
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
