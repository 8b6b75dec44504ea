// The data movers: three readers and two writers of memory, each behind a port of AXI4. Port 0 reads op0 and writes
// results, port 1 reads op1 and writes receive buffers, port 2 reads what is only sent, and programs beside it: what is
// sent waits for the network alone, and for no call of this engine.
//
// Latency, throughput: see its parts.

// Not every output of a part is needed here.
// verilator lint_off PINCONNECTEMPTY

module unisono_engine_movers
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  localparam int unsigned Ports = 3,
  localparam int unsigned IdWidth = 4
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Readers and writers, as of the core.
  input  logic [2:0]             read_command_valid_i,
  output logic [2:0]             read_command_ready_o,
  input  address_t               read_command_address_i [3],
  input  segment_bytes_t         read_command_bytes_i [3],
  output logic [2:0]             read_valid_o, read_last_o, read_error_o,
  input  logic [2:0]             read_ready_i,
  output logic [DataBytes*8-1:0] read_data_o [3],
  output logic [DataBytes-1:0]   read_keep_o [3],
  input  logic [1:0]             write_command_valid_i,
  output logic [1:0]             write_command_ready_o,
  input  address_t               write_command_address_i [2],
  input  segment_bytes_t         write_command_bytes_i [2],
  input  logic [1:0]             write_valid_i, write_last_i,
  output logic [1:0]             write_ready_o,
  input  logic [DataBytes*8-1:0] write_data_i [2],
  input  logic [DataBytes-1:0]   write_keep_i [2],
  output logic [1:0]             written_valid_o, written_error_o,

  // Programs. Their words, too, are those of reader 2.
  input  logic                   fetch_command_valid_i,
  output logic                   fetch_command_ready_o,
  input  address_t               fetch_command_address_i,
  input  segment_bytes_t         fetch_command_bytes_i,
  output logic                   fetch_valid_o,
  input  logic                   fetch_ready_i,

  output logic [Ports-1:0][IdWidth-1:0]     m_axi_arid,
  output logic [Ports-1:0][63:0]            m_axi_araddr,
  output logic [Ports-1:0][7:0]             m_axi_arlen,
  output logic [Ports-1:0][2:0]             m_axi_arsize,
  output logic [Ports-1:0][1:0]             m_axi_arburst,
  output logic [Ports-1:0]                  m_axi_arvalid,
  input  logic [Ports-1:0]                  m_axi_arready,
  input  logic [Ports-1:0][IdWidth-1:0]     m_axi_rid,
  input  logic [Ports-1:0][DataBytes*8-1:0] m_axi_rdata,
  input  logic [Ports-1:0][1:0]             m_axi_rresp,
  input  logic [Ports-1:0]                  m_axi_rlast,
  input  logic [Ports-1:0]                  m_axi_rvalid,
  output logic [Ports-1:0]                  m_axi_rready,
  output logic [Ports-1:0][IdWidth-1:0]     m_axi_awid,
  output logic [Ports-1:0][63:0]            m_axi_awaddr,
  output logic [Ports-1:0][7:0]             m_axi_awlen,
  output logic [Ports-1:0][2:0]             m_axi_awsize,
  output logic [Ports-1:0][1:0]             m_axi_awburst,
  output logic [Ports-1:0]                  m_axi_awvalid,
  // Port 2 only reads.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [Ports-1:0]                  m_axi_awready,
  // verilator lint_on UNUSEDSIGNAL
  output logic [Ports-1:0][DataBytes*8-1:0] m_axi_wdata,
  output logic [Ports-1:0][DataBytes-1:0]   m_axi_wstrb,
  output logic [Ports-1:0]                  m_axi_wlast,
  output logic [Ports-1:0]                  m_axi_wvalid,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [Ports-1:0]                  m_axi_wready,
  input  logic [Ports-1:0][IdWidth-1:0]     m_axi_bid,
  input  logic [Ports-1:0][1:0]             m_axi_bresp,
  input  logic [Ports-1:0]                  m_axi_bvalid,
  // verilator lint_on UNUSEDSIGNAL
  output logic [Ports-1:0]                  m_axi_bready
);

  logic [2:0] command_valid, command_ready, valid, ready;
  address_t address [3];
  segment_bytes_t bytes [3];

  for (genvar p = 0; p < 2; p++) begin : gen_alone
    assign command_valid[p] = read_command_valid_i[p];
    assign read_command_ready_o[p] = command_ready[p];
    assign address[p] = read_command_address_i[p];
    assign bytes[p] = read_command_bytes_i[p];
    assign read_valid_o[p] = valid[p];
    assign ready[p] = read_ready_i[p];
  end
  unisono_read_share u_program_share (
    .clk_i, .rst_ni,
    .command0_valid_i(read_command_valid_i[2]), .command0_ready_o(read_command_ready_o[2]),
    .command0_address_i(read_command_address_i[2]), .command0_bytes_i(read_command_bytes_i[2]),
    .out0_valid_o(read_valid_o[2]), .out0_ready_i(read_ready_i[2]),
    .command1_valid_i(fetch_command_valid_i), .command1_ready_o(fetch_command_ready_o),
    .command1_address_i(fetch_command_address_i), .command1_bytes_i(fetch_command_bytes_i),
    .out1_valid_o(fetch_valid_o), .out1_ready_i(fetch_ready_i),
    .read_command_valid_o(command_valid[2]), .read_command_ready_i(command_ready[2]),
    .read_command_address_o(address[2]), .read_command_bytes_o(bytes[2]),
    .read_valid_i(valid[2]), .read_ready_o(ready[2]), .read_last_i(read_last_o[2])
  );

  for (genvar p = 0; p < int'(Ports); p++) begin : gen_mover
    unisono_memory_read #(.DataBytes(DataBytes), .UserWidth(1)) u_read (
      .clk_i, .rst_ni,
      .cmd_valid_i(command_valid[p]), .cmd_ready_o(command_ready[p]),
      .cmd_address_i(address[p]), .cmd_bytes_i(32'(bytes[p])), .cmd_user_i(1'b0),
      .out_valid_o(valid[p]), .out_ready_i(ready[p]), .out_data_o(read_data_o[p]),
      .out_keep_o(read_keep_o[p]), .out_last_o(read_last_o[p]), .out_user_o(), .out_error_o(read_error_o[p]),
      .m_axi_arid(m_axi_arid[p]), .m_axi_araddr(m_axi_araddr[p]), .m_axi_arlen(m_axi_arlen[p]),
      .m_axi_arsize(m_axi_arsize[p]), .m_axi_arburst(m_axi_arburst[p]),
      .m_axi_arvalid(m_axi_arvalid[p]), .m_axi_arready(m_axi_arready[p]),
      .m_axi_rid(m_axi_rid[p]), .m_axi_rdata(m_axi_rdata[p]), .m_axi_rresp(m_axi_rresp[p]),
      .m_axi_rlast(m_axi_rlast[p]), .m_axi_rvalid(m_axi_rvalid[p]), .m_axi_rready(m_axi_rready[p])
    );
  end

  for (genvar p = 0; p < 2; p++) begin : gen_writer
    unisono_memory_write #(.DataBytes(DataBytes), .UserWidth(1)) u_write (
      .clk_i, .rst_ni,
      .cmd_valid_i(write_command_valid_i[p]), .cmd_ready_o(write_command_ready_o[p]),
      .cmd_address_i(write_command_address_i[p]), .cmd_bytes_i(32'(write_command_bytes_i[p])), .cmd_user_i(1'b0),
      .in_valid_i(write_valid_i[p]), .in_ready_o(write_ready_o[p]), .in_data_i(write_data_i[p]),
      .in_keep_i(write_keep_i[p]), .in_last_i(write_last_i[p]),
      .done_valid_o(written_valid_o[p]), .done_ready_i(1'b1), .done_user_o(), .done_error_o(written_error_o[p]),
      .m_axi_awid(m_axi_awid[p]), .m_axi_awaddr(m_axi_awaddr[p]), .m_axi_awlen(m_axi_awlen[p]),
      .m_axi_awsize(m_axi_awsize[p]), .m_axi_awburst(m_axi_awburst[p]),
      .m_axi_awvalid(m_axi_awvalid[p]), .m_axi_awready(m_axi_awready[p]),
      .m_axi_wdata(m_axi_wdata[p]), .m_axi_wstrb(m_axi_wstrb[p]), .m_axi_wlast(m_axi_wlast[p]),
      .m_axi_wvalid(m_axi_wvalid[p]), .m_axi_wready(m_axi_wready[p]),
      .m_axi_bid(m_axi_bid[p]), .m_axi_bresp(m_axi_bresp[p]), .m_axi_bvalid(m_axi_bvalid[p]),
      .m_axi_bready(m_axi_bready[p])
    );
  end

  assign m_axi_awid[2] = '0;
  assign m_axi_awaddr[2] = '0;
  assign m_axi_awlen[2] = '0;
  assign m_axi_awsize[2] = '0;
  assign m_axi_awburst[2] = '0;
  assign m_axi_awvalid[2] = 1'b0;
  assign m_axi_wdata[2] = '0;
  assign m_axi_wstrb[2] = '0;
  assign m_axi_wlast[2] = 1'b0;
  assign m_axi_wvalid[2] = 1'b0;
  assign m_axi_bready[2] = 1'b1;

endmodule
