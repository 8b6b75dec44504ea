// The whole engine with ports as other designs have them: AXI4, AXI4-Lite and AXI4-Stream by their usual names. See
// docs/rtl/ip.md.
//
// Untested on hardware: linted, simulated and proven in parts, never seen by a vendor's tool.
//
// Latency, throughput: the engine's; both resets take two cycles more, and with a clock of its own the network 4 to 6
// cycles in each direction.

module unisono_axi #(
  parameter int unsigned ClockMHz = 250,               // for deadlines
  parameter logic [63:0] BufferBase = 64'h0,           // of receive buffers in memory
  parameter int unsigned BufferBytes = 8192,
  parameter int unsigned CpuMemoryBytes = 131072,
  parameter int unsigned Nodes = 64,                   // of the network
  parameter bit          RxPause = 1'b1,
  parameter int unsigned StreamPorts = 0,              // of kernels: 0 or 1
  parameter bit          NetClock = 1'b0,              // *_axis_net_* have a clock of their own, net_aclk
  localparam int unsigned DataBytes = 64,              // the one width of the whole engine
  localparam int unsigned IdWidth = 4
) (
  input  logic                         aclk,
  input  logic                         aresetn,
  input  logic                         net_aclk,       // without NetClock not looked at

  // Host: the exchange memory, and a level that says that a completion waits.
  input  logic [13:0]                  s_axi_control_awaddr,
  input  logic [2:0]                   s_axi_control_awprot,
  input  logic                         s_axi_control_awvalid,
  output logic                         s_axi_control_awready,
  input  logic [31:0]                  s_axi_control_wdata,
  input  logic [3:0]                   s_axi_control_wstrb,
  input  logic                         s_axi_control_wvalid,
  output logic                         s_axi_control_wready,
  output logic [1:0]                   s_axi_control_bresp,
  output logic                         s_axi_control_bvalid,
  input  logic                         s_axi_control_bready,
  input  logic [13:0]                  s_axi_control_araddr,
  input  logic [2:0]                   s_axi_control_arprot,
  input  logic                         s_axi_control_arvalid,
  output logic                         s_axi_control_arready,
  output logic [31:0]                  s_axi_control_rdata,
  output logic [1:0]                   s_axi_control_rresp,
  output logic                         s_axi_control_rvalid,
  input  logic                         s_axi_control_rready,
  output logic                         irq,

  // Memory: op0 and results; op1, params and receive buffers; what is only sent, and long programs.
  output logic [IdWidth-1:0]           m_axi_op0_arid,
  output logic [63:0]                  m_axi_op0_araddr,
  output logic [7:0]                   m_axi_op0_arlen,
  output logic [2:0]                   m_axi_op0_arsize,
  output logic [1:0]                   m_axi_op0_arburst,
  output logic                         m_axi_op0_arvalid,
  input  logic                         m_axi_op0_arready,
  input  logic [IdWidth-1:0]           m_axi_op0_rid,
  input  logic [DataBytes*8-1:0]       m_axi_op0_rdata,
  input  logic [1:0]                   m_axi_op0_rresp,
  input  logic                         m_axi_op0_rlast,
  input  logic                         m_axi_op0_rvalid,
  output logic                         m_axi_op0_rready,
  output logic [IdWidth-1:0]           m_axi_op0_awid,
  output logic [63:0]                  m_axi_op0_awaddr,
  output logic [7:0]                   m_axi_op0_awlen,
  output logic [2:0]                   m_axi_op0_awsize,
  output logic [1:0]                   m_axi_op0_awburst,
  output logic                         m_axi_op0_awvalid,
  input  logic                         m_axi_op0_awready,
  output logic [DataBytes*8-1:0]       m_axi_op0_wdata,
  output logic [DataBytes-1:0]         m_axi_op0_wstrb,
  output logic                         m_axi_op0_wlast,
  output logic                         m_axi_op0_wvalid,
  input  logic                         m_axi_op0_wready,
  input  logic [IdWidth-1:0]           m_axi_op0_bid,
  input  logic [1:0]                   m_axi_op0_bresp,
  input  logic                         m_axi_op0_bvalid,
  output logic                         m_axi_op0_bready,
  output logic [IdWidth-1:0]           m_axi_op1_arid,
  output logic [63:0]                  m_axi_op1_araddr,
  output logic [7:0]                   m_axi_op1_arlen,
  output logic [2:0]                   m_axi_op1_arsize,
  output logic [1:0]                   m_axi_op1_arburst,
  output logic                         m_axi_op1_arvalid,
  input  logic                         m_axi_op1_arready,
  input  logic [IdWidth-1:0]           m_axi_op1_rid,
  input  logic [DataBytes*8-1:0]       m_axi_op1_rdata,
  input  logic [1:0]                   m_axi_op1_rresp,
  input  logic                         m_axi_op1_rlast,
  input  logic                         m_axi_op1_rvalid,
  output logic                         m_axi_op1_rready,
  output logic [IdWidth-1:0]           m_axi_op1_awid,
  output logic [63:0]                  m_axi_op1_awaddr,
  output logic [7:0]                   m_axi_op1_awlen,
  output logic [2:0]                   m_axi_op1_awsize,
  output logic [1:0]                   m_axi_op1_awburst,
  output logic                         m_axi_op1_awvalid,
  input  logic                         m_axi_op1_awready,
  output logic [DataBytes*8-1:0]       m_axi_op1_wdata,
  output logic [DataBytes-1:0]         m_axi_op1_wstrb,
  output logic                         m_axi_op1_wlast,
  output logic                         m_axi_op1_wvalid,
  input  logic                         m_axi_op1_wready,
  input  logic [IdWidth-1:0]           m_axi_op1_bid,
  input  logic [1:0]                   m_axi_op1_bresp,
  input  logic                         m_axi_op1_bvalid,
  output logic                         m_axi_op1_bready,
  output logic [IdWidth-1:0]           m_axi_send_arid,
  output logic [63:0]                  m_axi_send_araddr,
  output logic [7:0]                   m_axi_send_arlen,
  output logic [2:0]                   m_axi_send_arsize,
  output logic [1:0]                   m_axi_send_arburst,
  output logic                         m_axi_send_arvalid,
  input  logic                         m_axi_send_arready,
  input  logic [IdWidth-1:0]           m_axi_send_rid,
  input  logic [DataBytes*8-1:0]       m_axi_send_rdata,
  input  logic [1:0]                   m_axi_send_rresp,
  input  logic                         m_axi_send_rlast,
  input  logic                         m_axi_send_rvalid,
  output logic                         m_axi_send_rready,
  output logic [IdWidth-1:0]           m_axi_send_awid,
  output logic [63:0]                  m_axi_send_awaddr,
  output logic [7:0]                   m_axi_send_awlen,
  output logic [2:0]                   m_axi_send_awsize,
  output logic [1:0]                   m_axi_send_awburst,
  output logic                         m_axi_send_awvalid,
  input  logic                         m_axi_send_awready,
  output logic [DataBytes*8-1:0]       m_axi_send_wdata,
  output logic [DataBytes-1:0]         m_axi_send_wstrb,
  output logic                         m_axi_send_wlast,
  output logic                         m_axi_send_wvalid,
  input  logic                         m_axi_send_wready,
  input  logic [IdWidth-1:0]           m_axi_send_bid,
  input  logic [1:0]                   m_axi_send_bresp,
  input  logic                         m_axi_send_bvalid,
  output logic                         m_axi_send_bready,

  // A kernel beside the engine gives calls, packets of 1024 bits, and is answered: call id in bits 31..0, code in
  // 47..32. It is started with 64 bits, and says that it is done with a code. Without one tie inputs to 0, and
  // m_axis_answer_tready and m_axis_start_tready to 1.
  input  logic [DataBytes*8-1:0]       s_axis_call_tdata,
  input  logic [DataBytes-1:0]         s_axis_call_tkeep,
  input  logic                         s_axis_call_tlast,
  input  logic                         s_axis_call_tvalid,
  output logic                         s_axis_call_tready,
  output logic [47:0]                  m_axis_answer_tdata,
  output logic                         m_axis_answer_tvalid,
  input  logic                         m_axis_answer_tready,
  output logic [63:0]                  m_axis_start_tdata,
  output logic                         m_axis_start_tvalid,
  input  logic                         m_axis_start_tready,
  input  logic [15:0]                  s_axis_done_tdata,
  input  logic                         s_axis_done_tvalid,
  output logic                         s_axis_done_tready,

  // Stream port 0 of kernels, if StreamPorts is 1; tuser: the packet was cut off.
  input  logic [DataBytes*8-1:0]       s_axis_stream_tdata,
  input  logic [DataBytes-1:0]         s_axis_stream_tkeep,
  input  logic                         s_axis_stream_tlast,
  input  logic                         s_axis_stream_tvalid,
  output logic                         s_axis_stream_tready,
  output logic [DataBytes*8-1:0]       m_axis_stream_tdata,
  output logic [DataBytes-1:0]         m_axis_stream_tkeep,
  output logic                         m_axis_stream_tlast,
  output logic                         m_axis_stream_tuser,
  output logic                         m_axis_stream_tvalid,
  input  logic                         m_axis_stream_tready,

  // Frames. tuser of frames that leave: bytes in bits 15..0, the control lane in bit 16; tdest: the node they go to.
  // Of frames that come, besides: the node they come from in bits 32..17, damaged in bit 33. All of it is constant
  // over a frame, but for `damaged`, which counts with the last word.
  output logic [DataBytes*8-1:0]       m_axis_net_tdata,
  output logic [DataBytes-1:0]         m_axis_net_tkeep,
  output logic                         m_axis_net_tlast,
  output logic [15:0]                  m_axis_net_tdest,
  output logic [16:0]                  m_axis_net_tuser,
  output logic                         m_axis_net_tvalid,
  input  logic                         m_axis_net_tready,
  input  logic [DataBytes*8-1:0]       s_axis_net_tdata,
  input  logic [DataBytes-1:0]         s_axis_net_tkeep,
  input  logic                         s_axis_net_tlast,
  input  logic [33:0]                  s_axis_net_tuser,
  input  logic                         s_axis_net_tvalid,
  output logic                         s_axis_net_tready
);

  if (StreamPorts > 1) begin : gen_bad_streams
    $error("unisono_axi: StreamPorts must be 0 or 1");
  end

  // The reset leaves with the clock.
  (* ASYNC_REG = "TRUE" *) logic [1:0] reset_nq;
  always_ff @(posedge aclk) reset_nq <= {reset_nq[0], aresetn};

  logic tx_valid, tx_ready, tx_last, tx_control, rx_valid, rx_ready, rx_last;
  logic [DataBytes*8-1:0] tx_data, rx_data;
  logic [DataBytes-1:0] tx_keep, rx_keep;
  logic [15:0] tx_dest, tx_bytes;
  logic [33:0] rx_user;

  unisono_cclo_frame #(
    .DataBytes(DataBytes), .ClockMHz(ClockMHz), .KernelPorts(1), .BufferBase(BufferBase), .BufferBytes(BufferBytes),
    .CpuMemoryBytes(CpuMemoryBytes), .Nodes(Nodes), .RxPause(RxPause), .StreamPorts(StreamPorts)
  ) u_engine (
    .clk_i(aclk), .rst_ni(reset_nq[1]), .cycles_i(32'd1),
    .s_axi_awaddr  (s_axi_control_awaddr),
    .s_axi_awprot  (s_axi_control_awprot),
    .s_axi_awvalid (s_axi_control_awvalid),
    .s_axi_awready (s_axi_control_awready),
    .s_axi_wdata   (s_axi_control_wdata),
    .s_axi_wstrb   (s_axi_control_wstrb),
    .s_axi_wvalid  (s_axi_control_wvalid),
    .s_axi_wready  (s_axi_control_wready),
    .s_axi_bresp   (s_axi_control_bresp),
    .s_axi_bvalid  (s_axi_control_bvalid),
    .s_axi_bready  (s_axi_control_bready),
    .s_axi_araddr  (s_axi_control_araddr),
    .s_axi_arprot  (s_axi_control_arprot),
    .s_axi_arvalid (s_axi_control_arvalid),
    .s_axi_arready (s_axi_control_arready),
    .s_axi_rdata   (s_axi_control_rdata),
    .s_axi_rresp   (s_axi_control_rresp),
    .s_axi_rvalid  (s_axi_control_rvalid),
    .s_axi_rready  (s_axi_control_rready),
    .interrupt_o(irq),
    .call_valid_i(s_axis_call_tvalid), .call_ready_o(s_axis_call_tready), .call_data_i(s_axis_call_tdata),
    .call_keep_i(s_axis_call_tkeep), .call_last_i(s_axis_call_tlast),
    .answer_valid_o(m_axis_answer_tvalid), .answer_ready_i(m_axis_answer_tready), .answer_data_o(m_axis_answer_tdata),
    .kernel_start_valid_o(m_axis_start_tvalid), .kernel_start_ready_i(m_axis_start_tready),
    .kernel_start_data_o(m_axis_start_tdata),
    .kernel_done_valid_i(s_axis_done_tvalid), .kernel_done_code_i(s_axis_done_tdata),
    .stream_in_valid_i(s_axis_stream_tvalid), .stream_in_ready_o(s_axis_stream_tready),
    .stream_in_data_i(s_axis_stream_tdata), .stream_in_keep_i(s_axis_stream_tkeep),
    .stream_in_last_i(s_axis_stream_tlast),
    .stream_out_valid_o(m_axis_stream_tvalid), .stream_out_ready_i(m_axis_stream_tready),
    .stream_out_data_o(m_axis_stream_tdata), .stream_out_keep_o(m_axis_stream_tkeep),
    .stream_out_last_o(m_axis_stream_tlast), .stream_out_cut_o(m_axis_stream_tuser),
    .mac_tx_valid_o(tx_valid), .mac_tx_ready_i(tx_ready), .mac_tx_data_o(tx_data), .mac_tx_keep_o(tx_keep),
    .mac_tx_last_o(tx_last), .mac_tx_dest_o(tx_dest), .mac_tx_bytes_o(tx_bytes), .mac_tx_control_o(tx_control),
    .mac_rx_valid_i(rx_valid), .mac_rx_ready_o(rx_ready), .mac_rx_data_i(rx_data), .mac_rx_keep_i(rx_keep),
    .mac_rx_last_i(rx_last), .mac_rx_bytes_i(rx_user[15:0]), .mac_rx_control_i(rx_user[16]),
    .mac_rx_source_i(rx_user[32:17]), .mac_rx_error_i(rx_user[33]),
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
    // verilator lint_off PINCONNECTEMPTY
    .calm_o(), .events_o(), .record_valid_o(), .record_o()
    // verilator lint_on PINCONNECTEMPTY
  );
  assign s_axis_done_tready = 1'b1;

  if (NetClock) begin : gen_clock
    // Reset together with the engine, and left with the network's clock.
    (* ASYNC_REG = "TRUE" *) logic [1:0] net_reset_nq;
    always_ff @(posedge net_aclk) net_reset_nq <= {net_reset_nq[0], aresetn};

    localparam int unsigned TxWidth = DataBytes * 9 + 34;
    localparam int unsigned RxWidth = DataBytes * 9 + 35;
    unisono_cdc_fifo #(
      .Width(TxWidth)
    ) u_tx (
      .in_clk_i   (aclk),
      .in_rst_ni  (reset_nq[1]),
      .in_valid_i (tx_valid),
      .in_ready_o (tx_ready),
      .in_data_i  ({tx_data, tx_keep, tx_last, tx_dest, tx_control, tx_bytes}),
      .out_clk_i  (net_aclk),
      .out_rst_ni (net_reset_nq[1]),
      .out_valid_o(m_axis_net_tvalid),
      .out_ready_i(m_axis_net_tready),
      .out_data_o ({m_axis_net_tdata, m_axis_net_tkeep, m_axis_net_tlast, m_axis_net_tdest, m_axis_net_tuser})
    );
    unisono_cdc_fifo #(
      .Width(RxWidth)
    ) u_rx (
      .in_clk_i   (net_aclk),
      .in_rst_ni  (net_reset_nq[1]),
      .in_valid_i (s_axis_net_tvalid),
      .in_ready_o (s_axis_net_tready),
      .in_data_i  ({s_axis_net_tdata, s_axis_net_tkeep, s_axis_net_tlast, s_axis_net_tuser}),
      .out_clk_i  (aclk),
      .out_rst_ni (reset_nq[1]),
      .out_valid_o(rx_valid),
      .out_ready_i(rx_ready),
      .out_data_o ({rx_data, rx_keep, rx_last, rx_user})
    );
  end else begin : gen_same
    logic unused_net;
    assign unused_net = net_aclk;
    assign m_axis_net_tvalid = tx_valid;
    assign tx_ready = m_axis_net_tready;
    assign {m_axis_net_tdata, m_axis_net_tkeep, m_axis_net_tlast, m_axis_net_tdest, m_axis_net_tuser} =
        {tx_data, tx_keep, tx_last, tx_dest, tx_control, tx_bytes};
    assign rx_valid = s_axis_net_tvalid;
    assign s_axis_net_tready = rx_ready;
    assign {rx_data, rx_keep, rx_last, rx_user} =
        {s_axis_net_tdata, s_axis_net_tkeep, s_axis_net_tlast, s_axis_net_tuser};
  end

endmodule
