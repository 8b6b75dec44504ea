// Two engines with memories of their own, joined by their networks, which have a clock of their own: both are brought
// up as a host does it, and sum a vector. Prints PASS or FAIL, and ends.
//
// The firmware is read from the file that +firmware=FILE names. It shows every access that a driver has to make.

module unisono_ip_tb
  import unisono_spec_pkg::*;
;

  timeunit 1ps / 1ps;

  localparam int unsigned Nodes = 2;
  localparam int unsigned Words = 262144;             // of 64 bytes in each memory: receive buffers first
  localparam int unsigned BufferBytes = 8192;
  localparam logic [63:0] Source = 64'h0080_0000;     // behind 1024 receive buffers
  localparam logic [63:0] Result = 64'h0090_0000;
  localparam int unsigned Count = 3001;               // elements: not a multiple of a word's
  localparam int unsigned FirmwareWords = 32768;
  localparam int unsigned Place = 3;                  // of the communicator in the tables
  localparam logic [31:0] Number = 32'd77;            // by which engines know it
  localparam logic [31:0] CallId = 32'd1234;

  logic aclk = 1'b0, net_aclk = 1'b0, aresetn = 1'b0;
  always #2000 aclk = !aclk;
  always #1552 net_aclk = !net_aclk;

  // AXI4-Lite of each node, driven by the tasks below.
  logic [Nodes-1:0][13:0] awaddr, araddr;
  logic [Nodes-1:0][31:0] wdata, rdata;
  logic [Nodes-1:0] awvalid, awready, wvalid, wready, bvalid, arvalid, arready, rvalid;
  logic [Nodes-1:0][1:0] bresp, rresp;

  // Frames of each node.
  logic [Nodes-1:0][511:0] tx_data;
  logic [Nodes-1:0][63:0] tx_keep;
  logic [Nodes-1:0] tx_last, tx_valid, tx_ready;
  logic [Nodes-1:0][16:0] tx_user;

  for (genvar n = 0; n < int'(Nodes); n++) begin : gen_node
    localparam int unsigned Other = 1 - n;
    logic [2:0][3:0] arid, rid, awid, bid;
    logic [2:0][63:0] araddr_m, awaddr_m, wstrb;
    logic [2:0][7:0] arlen;
    logic [2:0] arvalid_m, arready_m, rlast, rvalid_m, rready, awvalid_m, awready_m, wlast, wvalid_m, wready_m;
    logic [2:0] bvalid_m, bready;
    logic [2:0][511:0] rdata_m, wdata_m;
    logic [2:0][1:0] rresp_m, bresp_m;

    // verilator lint_off PINCONNECTEMPTY
    unisono_axi #(
      .BufferBytes(BufferBytes),
      .NetClock   (1'b1)
    ) u_engine (
      .aclk, .aresetn, .net_aclk,
      .s_axi_control_awaddr(awaddr[n]), .s_axi_control_awprot('0), .s_axi_control_awvalid(awvalid[n]),
      .s_axi_control_awready(awready[n]), .s_axi_control_wdata(wdata[n]), .s_axi_control_wstrb('1),
      .s_axi_control_wvalid(wvalid[n]), .s_axi_control_wready(wready[n]), .s_axi_control_bresp(bresp[n]),
      .s_axi_control_bvalid(bvalid[n]), .s_axi_control_bready(1'b1), .s_axi_control_araddr(araddr[n]),
      .s_axi_control_arprot('0), .s_axi_control_arvalid(arvalid[n]), .s_axi_control_arready(arready[n]),
      .s_axi_control_rdata(rdata[n]), .s_axi_control_rresp(rresp[n]), .s_axi_control_rvalid(rvalid[n]),
      .s_axi_control_rready(1'b1), .irq(),
      .m_axi_op0_arid(arid[0]), .m_axi_op0_araddr(araddr_m[0]), .m_axi_op0_arlen(arlen[0]), .m_axi_op0_arsize(),
      .m_axi_op0_arburst(), .m_axi_op0_arvalid(arvalid_m[0]), .m_axi_op0_arready(arready_m[0]),
      .m_axi_op0_rid(rid[0]), .m_axi_op0_rdata(rdata_m[0]), .m_axi_op0_rresp(rresp_m[0]), .m_axi_op0_rlast(rlast[0]),
      .m_axi_op0_rvalid(rvalid_m[0]), .m_axi_op0_rready(rready[0]), .m_axi_op0_awid(awid[0]),
      .m_axi_op0_awaddr(awaddr_m[0]), .m_axi_op0_awlen(), .m_axi_op0_awsize(), .m_axi_op0_awburst(),
      .m_axi_op0_awvalid(awvalid_m[0]), .m_axi_op0_awready(awready_m[0]), .m_axi_op0_wdata(wdata_m[0]),
      .m_axi_op0_wstrb(wstrb[0]), .m_axi_op0_wlast(wlast[0]), .m_axi_op0_wvalid(wvalid_m[0]),
      .m_axi_op0_wready(wready_m[0]), .m_axi_op0_bid(bid[0]), .m_axi_op0_bresp(bresp_m[0]),
      .m_axi_op0_bvalid(bvalid_m[0]), .m_axi_op0_bready(bready[0]),
      .m_axi_op1_arid(arid[1]), .m_axi_op1_araddr(araddr_m[1]), .m_axi_op1_arlen(arlen[1]), .m_axi_op1_arsize(),
      .m_axi_op1_arburst(), .m_axi_op1_arvalid(arvalid_m[1]), .m_axi_op1_arready(arready_m[1]),
      .m_axi_op1_rid(rid[1]), .m_axi_op1_rdata(rdata_m[1]), .m_axi_op1_rresp(rresp_m[1]), .m_axi_op1_rlast(rlast[1]),
      .m_axi_op1_rvalid(rvalid_m[1]), .m_axi_op1_rready(rready[1]), .m_axi_op1_awid(awid[1]),
      .m_axi_op1_awaddr(awaddr_m[1]), .m_axi_op1_awlen(), .m_axi_op1_awsize(), .m_axi_op1_awburst(),
      .m_axi_op1_awvalid(awvalid_m[1]), .m_axi_op1_awready(awready_m[1]), .m_axi_op1_wdata(wdata_m[1]),
      .m_axi_op1_wstrb(wstrb[1]), .m_axi_op1_wlast(wlast[1]), .m_axi_op1_wvalid(wvalid_m[1]),
      .m_axi_op1_wready(wready_m[1]), .m_axi_op1_bid(bid[1]), .m_axi_op1_bresp(bresp_m[1]),
      .m_axi_op1_bvalid(bvalid_m[1]), .m_axi_op1_bready(bready[1]),
      .m_axi_send_arid(arid[2]), .m_axi_send_araddr(araddr_m[2]), .m_axi_send_arlen(arlen[2]), .m_axi_send_arsize(),
      .m_axi_send_arburst(), .m_axi_send_arvalid(arvalid_m[2]), .m_axi_send_arready(arready_m[2]),
      .m_axi_send_rid(rid[2]), .m_axi_send_rdata(rdata_m[2]), .m_axi_send_rresp(rresp_m[2]),
      .m_axi_send_rlast(rlast[2]), .m_axi_send_rvalid(rvalid_m[2]), .m_axi_send_rready(rready[2]),
      .m_axi_send_awid(awid[2]), .m_axi_send_awaddr(awaddr_m[2]), .m_axi_send_awlen(), .m_axi_send_awsize(),
      .m_axi_send_awburst(), .m_axi_send_awvalid(awvalid_m[2]), .m_axi_send_awready(awready_m[2]),
      .m_axi_send_wdata(wdata_m[2]), .m_axi_send_wstrb(wstrb[2]), .m_axi_send_wlast(wlast[2]),
      .m_axi_send_wvalid(wvalid_m[2]), .m_axi_send_wready(wready_m[2]), .m_axi_send_bid(bid[2]),
      .m_axi_send_bresp(bresp_m[2]), .m_axi_send_bvalid(bvalid_m[2]), .m_axi_send_bready(bready[2]),
      // No kernel stands beside the engine.
      .s_axis_call_tdata('0), .s_axis_call_tkeep('0), .s_axis_call_tlast('0), .s_axis_call_tvalid('0),
      .s_axis_call_tready(), .m_axis_answer_tdata(), .m_axis_answer_tvalid(), .m_axis_answer_tready('1),
      .m_axis_start_tdata(), .m_axis_start_tvalid(), .m_axis_start_tready('1),
      .s_axis_done_tdata('0), .s_axis_done_tvalid('0), .s_axis_done_tready(),
      .s_axis_stream_tdata('0), .s_axis_stream_tkeep('0), .s_axis_stream_tlast('0), .s_axis_stream_tvalid('0),
      .s_axis_stream_tready(), .m_axis_stream_tdata(), .m_axis_stream_tkeep(), .m_axis_stream_tlast(),
      .m_axis_stream_tuser(), .m_axis_stream_tvalid(), .m_axis_stream_tready('1),
      // What leaves one node comes to the other, from there and whole.
      .m_axis_net_tdata(tx_data[n]), .m_axis_net_tkeep(tx_keep[n]), .m_axis_net_tlast(tx_last[n]),
      .m_axis_net_tdest(), .m_axis_net_tuser(tx_user[n]), .m_axis_net_tvalid(tx_valid[n]),
      .m_axis_net_tready(tx_ready[n]),
      .s_axis_net_tdata(tx_data[Other]), .s_axis_net_tkeep(tx_keep[Other]), .s_axis_net_tlast(tx_last[Other]),
      .s_axis_net_tuser({1'b0, 16'(Other), tx_user[Other]}), .s_axis_net_tvalid(tx_valid[Other]),
      .s_axis_net_tready(tx_ready[Other])
    );
    // verilator lint_on PINCONNECTEMPTY

    unisono_ip_memory #(
      .Words(Words)
    ) u_memory (
      .aclk, .aresetn, .arid, .araddr(araddr_m), .arlen, .arvalid(arvalid_m), .arready(arready_m), .rid,
      .rdata(rdata_m), .rresp(rresp_m), .rlast, .rvalid(rvalid_m), .rready, .awid, .awaddr(awaddr_m),
      .awvalid(awvalid_m), .awready(awready_m), .wdata(wdata_m), .wstrb, .wlast, .wvalid(wvalid_m),
      .wready(wready_m), .bid, .bresp(bresp_m), .bvalid(bvalid_m), .bready
    );
  end

  // ---- a host's accesses ----

  int unsigned refused = 0;

  task automatic write(int unsigned n, int unsigned offset, logic [31:0] value);
    @(negedge aclk);
    awaddr[n] = 14'(offset);
    wdata[n] = value;
    awvalid[n] = 1'b1;
    wvalid[n] = 1'b1;
    while (awvalid[n] || wvalid[n]) begin
      automatic logic taken = awready[n];
      automatic logic given = wready[n];
      @(negedge aclk);
      if (taken) awvalid[n] = 1'b0;
      if (given) wvalid[n] = 1'b0;
    end
    while (!bvalid[n]) @(negedge aclk);
    if (bresp[n] != 2'b00) begin
      refused++;
      $display("node %0d refuses a write of %h to %h", n, value, offset);
    end
  endtask

  task automatic read(int unsigned n, int unsigned offset, output logic [31:0] value);
    @(negedge aclk);
    araddr[n] = 14'(offset);
    arvalid[n] = 1'b1;
    while (arvalid[n]) begin
      automatic logic taken = arready[n];
      @(negedge aclk);
      if (taken) arvalid[n] = 1'b0;
    end
    while (!rvalid[n]) @(negedge aclk);
    value = rdata[n];
    if (rresp[n] != 2'b00) begin
      refused++;
      $display("node %0d refuses a read of %h", n, offset);
    end
  endtask

  // The microcontroller's program, and its start.
  logic [31:0] firmware [FirmwareWords];
  task automatic bring_up(int unsigned n);
    automatic logic [31:0] value;
    read(n, ExchangeIdentityOffset, value);
    if (value != 32'h554e4953) $display("node %0d says that it is %h, no engine", n, value);
    write(n, ExchangeControlOffset, 32'd1);
    do read(n, ExchangeControlOffset, value); while (value[0]);
    write(n, ExchangeControlOffset, 32'd0);
    write(n, ExchangeFirmwareAddressOffset, 32'd0);
    for (int unsigned i = 0; i < FirmwareWords && !$isunknown(firmware[i]); i++) begin
      if (i >= firmware_words) break;
      write(n, ExchangeFirmwareDataOffset, firmware[i]);
    end
    write(n, ExchangeEagerLimitOffset, 32'd4096);
    write(n, ExchangeSegmentBytesOffset, 32'd4096);
    write(n, ExchangeRxBufferCountOffset, 32'd4);
    write(n, ExchangeRxBufferBytesOffset, 32'd4096);
    write(n, ExchangeTimeoutUsOffset, 32'd1000000);
    write(n, ExchangeControlOffset, 32'd2);
    do read(n, ExchangeStatusOffset, value); while (!value[0]);
  endtask

  // A communicator of all nodes: sessions of the transport, members, and the entry.
  task automatic create_communicator(int unsigned n);
    automatic logic [15:0][31:0] entry = '0;
    automatic logic [31:0] low, high;
    automatic capability_t capability;
    read(n, ExchangeCapabilityOffset, low);
    read(n, ExchangeCapabilityOffset + 4, high);
    capability = capability_t'({high, low});
    for (int unsigned rank = 0; rank < Nodes; rank++) begin
      if (rank != n) write(n, ExchangeTransportOffset + 4 * rank, 32'h8000_0000 | rank);
      write(n, ExchangeMembersOffset + 256 * Place + 4 * rank,
            32'h8000_0000 | (rank == n ? 32'(unisono_cclo_pkg::SelfSession) : rank));
    end
    entry[1] = Number;
    entry[2] = n;
    entry[3] = Nodes;
    entry[5] = 32'd4096;                           // eager limit
    entry[6] = 32'(capability.datatypes);
    entry[7] = 32'(capability.funcs);
    entry[8] = Number;
    entry[10] = 32'd4096;                          // eager limit, segment, receive buffers of a peer
    entry[11] = 32'd4096;
    entry[12] = 32'd4;
    entry[13] = Nodes | n << 16;
    entry[14] = 32'd1;                             // valid for the data path
    entry[0] = 32'd1 | 32'd1 << 3;                 // and, last, for the microcontroller
    write(n, ExchangeCommunicatorsOffset + 64 * Place + 4 * 14, 32'd0);
    for (int unsigned i = 1; i < 15; i++) write(n, ExchangeCommunicatorsOffset + 64 * Place + 4 * i, entry[i]);
    write(n, ExchangeCommunicatorsOffset + 64 * Place, entry[0]);
  endtask

  // A call, and its end.
  task automatic start_sum(int unsigned n);
    automatic call_descriptor_t call = '0;
    automatic logic [31:0][31:0] words;
    automatic logic [31:0] value;
    call.collective = CollectiveAllreduce;
    call.func = FuncSum;
    call.dtype = 8'(DatatypeInt32);
    call.communicator = Place;
    call.count = Count;
    call.src_address = Source;
    call.src_bytes = 4 * Count;
    call.dst_address = Result;
    call.dst_bytes = 4 * Count;
    call.scratch_address = 64'h00a0_0000;
    call.scratch_bytes = 64'h0010_0000;
    call.call_id = CallId;
    words = call;
    do read(n, ExchangeStatusOffset, value); while (value[2]);
    for (int unsigned i = 0; i < 32; i++) write(n, ExchangeCallSlotOffset + 4 * i, words[i]);
    write(n, ExchangeDoorbellOffset, 32'd1);
  endtask

  int unsigned failed = 0;
  task automatic await_sum(int unsigned n);
    automatic logic [31:0] id, code;
    do read(n, ExchangeCompletedOffset, id); while (id == '0);
    read(n, ExchangeCompletedCodeOffset, code);
    if (id != CallId || code[15:0] != '0) begin
      failed++;
      $display("node %0d: call %0d ended with code %0d", n, id, code[15:0]);
    end
  endtask

  // ---- the test ----

  function automatic logic [31:0] element(int unsigned n, int unsigned i);
    return 32'(i * 2654435761 + (n + 1) * 40503);
  endfunction

  function automatic logic [31:0] stored(int unsigned n, logic [63:0] address);
    automatic int unsigned word = int'(address[31:6]);
    return n == 0 ? gen_node[0].u_memory.mem[word][8*int'(address[5:0])+:32]
                  : gen_node[1].u_memory.mem[word][8*int'(address[5:0])+:32];
  endfunction

  int unsigned firmware_words = 0;
  int unsigned wrong = 0;
  initial begin
    automatic string file;
    automatic int descriptor;
    automatic longint began;
    awvalid = '0;
    wvalid = '0;
    arvalid = '0;
    if (!$value$plusargs("firmware=%s", file)) file = "firmware/unisono.hex";
    descriptor = $fopen(file, "r");
    if (descriptor == 0) begin
      $display("FAIL: no file %s", file);
      $finish;
    end
    while ($fscanf(descriptor, "%h", firmware[firmware_words]) == 1) firmware_words++;
    $fclose(descriptor);
    for (int unsigned i = 0; i < Count; i++) begin
      automatic logic [63:0] at = Source + 64'(4 * i);
      gen_node[0].u_memory.mem[at[31:6]][8*int'(at[5:0])+:32] = element(0, i);
      gen_node[1].u_memory.mem[at[31:6]][8*int'(at[5:0])+:32] = element(1, i);
    end
    repeat (20) @(negedge aclk);
    aresetn = 1'b1;
    repeat (20) @(negedge aclk);
    $display("two engines, firmware of %0d bytes each", 4 * firmware_words);
    for (int unsigned n = 0; n < Nodes; n++) bring_up(n);
    for (int unsigned n = 0; n < Nodes; n++) create_communicator(n);
    began = longint'($time);
    for (int unsigned n = 0; n < Nodes; n++) start_sum(n);
    for (int unsigned n = 0; n < Nodes; n++) await_sum(n);
    $display("all-reduce of %0d elements: %0d ns, accesses of both hosts included", Count,
             (longint'($time) - began) / 1000);
    for (int unsigned n = 0; n < Nodes; n++) begin
      for (int unsigned i = 0; i < Count; i++) begin
        if (stored(n, Result + 64'(4 * i)) != element(0, i) + element(1, i)) wrong++;
      end
    end
    if (wrong == 0 && failed == 0 && refused == 0) $display("PASS");
    else $display("FAIL: %0d elements wrong, %0d calls failed, %0d accesses refused", wrong, failed, refused);
    $finish;
  end

  initial begin
    repeat (100) #1_000_000_000;
    $display("FAIL: no end after 100 ms");
    $finish;
  end

endmodule
