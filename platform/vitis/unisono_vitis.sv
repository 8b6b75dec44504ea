// The engine under the names that Vitis infers for an RTL kernel: clock and reset of the kernel, two AXI4 masters, a
// stream of frames each way. See docs/rtl/vitis.md.
//
// Untested on hardware: only linted, never run, never seen by a vendor's tool.
//
// Latency, throughput: the engine's; the reset takes two cycles more.

module unisono_vitis
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter logic [63:0] BufferBase = 64'h0,           // of receive buffers in memory
  parameter int unsigned BufferBytes = 8192,
  parameter int unsigned Nodes = 64,
  parameter bit          RxPause = 1'b1,
  localparam int unsigned IdWidth = 4,
  localparam int unsigned RegWidth = 11
) (
  input  logic                     ap_clk,
  input  logic                     ap_rst_n,

  // Memory: op0 and results, op1 and receive buffers.
  output logic [IdWidth-1:0]       m_axi_op0_arid,
  output logic [63:0]              m_axi_op0_araddr,
  output logic [7:0]               m_axi_op0_arlen,
  output logic [2:0]               m_axi_op0_arsize,
  output logic [1:0]               m_axi_op0_arburst,
  output logic                     m_axi_op0_arvalid,
  input  logic                     m_axi_op0_arready,
  input  logic [IdWidth-1:0]       m_axi_op0_rid,
  input  logic [DataBytes*8-1:0]   m_axi_op0_rdata,
  input  logic [1:0]               m_axi_op0_rresp,
  input  logic                     m_axi_op0_rlast,
  input  logic                     m_axi_op0_rvalid,
  output logic                     m_axi_op0_rready,
  output logic [IdWidth-1:0]       m_axi_op0_awid,
  output logic [63:0]              m_axi_op0_awaddr,
  output logic [7:0]               m_axi_op0_awlen,
  output logic [2:0]               m_axi_op0_awsize,
  output logic [1:0]               m_axi_op0_awburst,
  output logic                     m_axi_op0_awvalid,
  input  logic                     m_axi_op0_awready,
  output logic [DataBytes*8-1:0]   m_axi_op0_wdata,
  output logic [DataBytes-1:0]     m_axi_op0_wstrb,
  output logic                     m_axi_op0_wlast,
  output logic                     m_axi_op0_wvalid,
  input  logic                     m_axi_op0_wready,
  input  logic [IdWidth-1:0]       m_axi_op0_bid,
  input  logic [1:0]               m_axi_op0_bresp,
  input  logic                     m_axi_op0_bvalid,
  output logic                     m_axi_op0_bready,
  output logic [IdWidth-1:0]       m_axi_op1_arid,
  output logic [63:0]              m_axi_op1_araddr,
  output logic [7:0]               m_axi_op1_arlen,
  output logic [2:0]               m_axi_op1_arsize,
  output logic [1:0]               m_axi_op1_arburst,
  output logic                     m_axi_op1_arvalid,
  input  logic                     m_axi_op1_arready,
  input  logic [IdWidth-1:0]       m_axi_op1_rid,
  input  logic [DataBytes*8-1:0]   m_axi_op1_rdata,
  input  logic [1:0]               m_axi_op1_rresp,
  input  logic                     m_axi_op1_rlast,
  input  logic                     m_axi_op1_rvalid,
  output logic                     m_axi_op1_rready,
  output logic [IdWidth-1:0]       m_axi_op1_awid,
  output logic [63:0]              m_axi_op1_awaddr,
  output logic [7:0]               m_axi_op1_awlen,
  output logic [2:0]               m_axi_op1_awsize,
  output logic [1:0]               m_axi_op1_awburst,
  output logic                     m_axi_op1_awvalid,
  input  logic                     m_axi_op1_awready,
  output logic [DataBytes*8-1:0]   m_axi_op1_wdata,
  output logic [DataBytes-1:0]     m_axi_op1_wstrb,
  output logic                     m_axi_op1_wlast,
  output logic                     m_axi_op1_wvalid,
  input  logic                     m_axi_op1_wready,
  input  logic [IdWidth-1:0]       m_axi_op1_bid,
  input  logic [1:0]               m_axi_op1_bresp,
  input  logic                     m_axi_op1_bvalid,
  output logic                     m_axi_op1_bready,
  output logic [IdWidth-1:0]       m_axi_send_arid,
  output logic [63:0]              m_axi_send_araddr,
  output logic [7:0]               m_axi_send_arlen,
  output logic [2:0]               m_axi_send_arsize,
  output logic [1:0]               m_axi_send_arburst,
  output logic                     m_axi_send_arvalid,
  input  logic                     m_axi_send_arready,
  input  logic [IdWidth-1:0]       m_axi_send_rid,
  input  logic [DataBytes*8-1:0]   m_axi_send_rdata,
  input  logic [1:0]               m_axi_send_rresp,
  input  logic                     m_axi_send_rlast,
  input  logic                     m_axi_send_rvalid,
  output logic                     m_axi_send_rready,
  output logic [IdWidth-1:0]       m_axi_send_awid,
  output logic [63:0]              m_axi_send_awaddr,
  output logic [7:0]               m_axi_send_awlen,
  output logic [2:0]               m_axi_send_awsize,
  output logic [1:0]               m_axi_send_awburst,
  output logic                     m_axi_send_awvalid,
  input  logic                     m_axi_send_awready,
  output logic [DataBytes*8-1:0]   m_axi_send_wdata,
  output logic [DataBytes-1:0]     m_axi_send_wstrb,
  output logic                     m_axi_send_wlast,
  output logic                     m_axi_send_wvalid,
  input  logic                     m_axi_send_wready,
  input  logic [IdWidth-1:0]       m_axi_send_bid,
  input  logic [1:0]               m_axi_send_bresp,
  input  logic                     m_axi_send_bvalid,
  output logic                     m_axi_send_bready,

  // Frames. tuser of frames that leave: bytes in bits 15..0, the control lane in bit 16; tdest: the node they go to. Of
  // frames that come, besides: the node they come from in bits 32..17, damaged in bit 33. All of it is constant over a
  // frame, but for `damaged`, which counts with the last word.
  output logic [DataBytes*8-1:0]   m_axis_net_tdata,
  output logic [DataBytes-1:0]     m_axis_net_tkeep,
  output logic                     m_axis_net_tlast,
  output logic [15:0]              m_axis_net_tdest,
  output logic [16:0]              m_axis_net_tuser,
  output logic                     m_axis_net_tvalid,
  input  logic                     m_axis_net_tready,
  input  logic [DataBytes*8-1:0]   s_axis_net_tdata,
  input  logic [DataBytes-1:0]     s_axis_net_tkeep,
  input  logic                     s_axis_net_tlast,
  input  logic [33:0]              s_axis_net_tuser,
  input  logic                     s_axis_net_tvalid,
  output logic                     s_axis_net_tready,

  // The engine's other ports, under their names there. Microcontroller and call front end will stand behind them, and
  // an AXI4-Lite slave s_axi_control will take their place.
  // Moves of the active calls, and the lists that they name; see unisono_cclo_core.
  input  logic  move_valid_i,
  output logic  move_ready_o,
  input  slot_t move_slot_i,
  input  move_t move_i,
  input  logic  move_end_i,
  input  logic        pool_write_i,
  input  slot_t       pool_write_slot_i,
  input  pool_index_t pool_write_index_i,
  input  rank_t       pool_write_word_i,
  output logic [Calls-1:0][EntryWidth:0] room_o,
  output logic  finished_valid_o,
  output slot_t finished_slot_o,

  // A call is given a slot: what was there is forgotten. Its context follows, and then its first move.
  input  logic  clear_valid_i,
  input  slot_t clear_slot_i,
  input  logic  clear_failed_i,
  output logic  clear_done_o,
  output logic [unisono_dmp_pkg::BufferWidth:0] free_buffers_o,
  input  logic          context_valid_i,
  input  slot_t         context_slot_i,
  input  call_context_t context_i,
  input  logic          context_local_i,
  output slot_t    binding_slot_o,
  output region_e  binding_region_o,
  input  binding_t binding_i,
  output logic        fail_valid_o,
  output slot_t       fail_slot_o,
  output error_code_e fail_code_o,

  // Tables of communicators and members; see unisono_communicators. Writing 1 to a communicator's word 6 also sets up
  // its credits.
  input  logic                reg_valid_i,
  output logic                reg_ready_o,
  input  logic                reg_write_i,
  input  logic [RegWidth-1:0] reg_word_i,
  input  logic [31:0]         reg_data_i,
  output logic                reg_valid_o,
  output logic [31:0]         reg_data_o,

  // Registers of the transport; see unisono_poe_frame.
  input  logic        poe_reg_valid_i,
  output logic        poe_reg_ready_o,
  input  logic        poe_reg_write_i,
  input  logic [15:0] poe_reg_addr_i,
  input  logic [31:0] poe_reg_wdata_i,
  output logic [31:0] poe_reg_rdata_o,

  // What Rx refused.
  output logic        rx_fault_valid_o,
  output fault_e      rx_fault_code_o
);

  // The reset leaves with the clock.
  (* ASYNC_REG = "TRUE" *) logic [1:0] reset_nq;
  always_ff @(posedge ap_clk) reset_nq <= {reset_nq[0], ap_rst_n};

  unisono_cclo_engine_frame #(
    .DataBytes(DataBytes), .BufferBase(BufferBase), .BufferBytes(BufferBytes), .Nodes(Nodes), .RxPause(RxPause)
  ) u_engine (
    .clk_i(ap_clk), .rst_ni(reset_nq[1]),
    .mac_tx_valid_o(m_axis_net_tvalid), .mac_tx_ready_i(m_axis_net_tready), .mac_tx_data_o(m_axis_net_tdata),
    .mac_tx_keep_o(m_axis_net_tkeep), .mac_tx_last_o(m_axis_net_tlast), .mac_tx_dest_o(m_axis_net_tdest),
    .mac_tx_bytes_o(m_axis_net_tuser[15:0]), .mac_tx_control_o(m_axis_net_tuser[16]),
    .mac_rx_valid_i(s_axis_net_tvalid), .mac_rx_ready_o(s_axis_net_tready), .mac_rx_data_i(s_axis_net_tdata),
    .mac_rx_keep_i(s_axis_net_tkeep), .mac_rx_last_i(s_axis_net_tlast), .mac_rx_bytes_i(s_axis_net_tuser[15:0]),
    .mac_rx_control_i(s_axis_net_tuser[16]), .mac_rx_source_i(s_axis_net_tuser[32:17]),
    .mac_rx_error_i(s_axis_net_tuser[33]),
    // No streams of kernels here.
    // verilator lint_off PINCONNECTEMPTY
    .stream_in_valid_i('0), .stream_in_ready_o(), .stream_in_data_i('0), .stream_in_keep_i('0), .stream_in_last_i('0),
    .stream_out_valid_o(), .stream_out_ready_i('0), .stream_out_data_o(), .stream_out_keep_o(),
    .stream_out_last_o(), .stream_out_cut_o(), .src_stream_i('0), .dst_stream_i('0),
    .src_port_i('0), .dst_port_i('0),
    // No windows for peers, and no programs in memory: both come from what stands in front of the engine.
    .window_address_i('0), .window_bytes_i('0),
    .fetch_command_valid_i(1'b0), .fetch_command_ready_o(), .fetch_command_address_i('0), .fetch_command_bytes_i('0),
    .fetch_valid_o(), .fetch_ready_i(1'b0), .fetch_data_o(), .fetch_last_o(), .fetch_error_o(),
    // verilator lint_on PINCONNECTEMPTY
    .m_axi_arid    ({m_axi_send_arid, m_axi_op1_arid, m_axi_op0_arid}),
    .m_axi_araddr  ({m_axi_send_araddr, m_axi_op1_araddr, m_axi_op0_araddr}),
    .m_axi_arlen   ({m_axi_send_arlen, m_axi_op1_arlen, m_axi_op0_arlen}),
    .m_axi_arsize  ({m_axi_send_arsize, m_axi_op1_arsize, m_axi_op0_arsize}),
    .m_axi_arburst ({m_axi_send_arburst, m_axi_op1_arburst, m_axi_op0_arburst}),
    .m_axi_arvalid ({m_axi_send_arvalid, m_axi_op1_arvalid, m_axi_op0_arvalid}),
    .m_axi_arready ({m_axi_send_arready, m_axi_op1_arready, m_axi_op0_arready}),
    .m_axi_rid     ({m_axi_send_rid, m_axi_op1_rid, m_axi_op0_rid}),
    .m_axi_rdata   ({m_axi_send_rdata, m_axi_op1_rdata, m_axi_op0_rdata}),
    .m_axi_rresp   ({m_axi_send_rresp, m_axi_op1_rresp, m_axi_op0_rresp}),
    .m_axi_rlast   ({m_axi_send_rlast, m_axi_op1_rlast, m_axi_op0_rlast}),
    .m_axi_rvalid  ({m_axi_send_rvalid, m_axi_op1_rvalid, m_axi_op0_rvalid}),
    .m_axi_rready  ({m_axi_send_rready, m_axi_op1_rready, m_axi_op0_rready}),
    .m_axi_awid    ({m_axi_send_awid, m_axi_op1_awid, m_axi_op0_awid}),
    .m_axi_awaddr  ({m_axi_send_awaddr, m_axi_op1_awaddr, m_axi_op0_awaddr}),
    .m_axi_awlen   ({m_axi_send_awlen, m_axi_op1_awlen, m_axi_op0_awlen}),
    .m_axi_awsize  ({m_axi_send_awsize, m_axi_op1_awsize, m_axi_op0_awsize}),
    .m_axi_awburst ({m_axi_send_awburst, m_axi_op1_awburst, m_axi_op0_awburst}),
    .m_axi_awvalid ({m_axi_send_awvalid, m_axi_op1_awvalid, m_axi_op0_awvalid}),
    .m_axi_awready ({m_axi_send_awready, m_axi_op1_awready, m_axi_op0_awready}),
    .m_axi_wdata   ({m_axi_send_wdata, m_axi_op1_wdata, m_axi_op0_wdata}),
    .m_axi_wstrb   ({m_axi_send_wstrb, m_axi_op1_wstrb, m_axi_op0_wstrb}),
    .m_axi_wlast   ({m_axi_send_wlast, m_axi_op1_wlast, m_axi_op0_wlast}),
    .m_axi_wvalid  ({m_axi_send_wvalid, m_axi_op1_wvalid, m_axi_op0_wvalid}),
    .m_axi_wready  ({m_axi_send_wready, m_axi_op1_wready, m_axi_op0_wready}),
    .m_axi_bid     ({m_axi_send_bid, m_axi_op1_bid, m_axi_op0_bid}),
    .m_axi_bresp   ({m_axi_send_bresp, m_axi_op1_bresp, m_axi_op0_bresp}),
    .m_axi_bvalid  ({m_axi_send_bvalid, m_axi_op1_bvalid, m_axi_op0_bvalid}),
    .m_axi_bready  ({m_axi_send_bready, m_axi_op1_bready, m_axi_op0_bready}),
    .cycle_i       ('0),
    // Nobody watches it here.
    // verilator lint_off PINCONNECTEMPTY
    .events_o      (),
    .record_valid_o(),
    .record_o      (),
    // verilator lint_on PINCONNECTEMPTY
    .*
  );

endmodule
