// Several writers on several memory channels: routes bursts by address, round robin per burst at
// each channel, and answers by id, round robin at each writer.
//
// The channels hold memory in turns of InterleaveBytes; a channel sees addresses without the bits
// that chose it. Writers on different channels run at the same time.
//
// Data has no ids, so a channel takes the data of bursts in the order of their requests, and so
// does a writer send it. A request enters both queues, its writer's and its channel's, in the same
// cycle. So of all bursts on their way the oldest is first in both, and its data flows: there is no
// deadlock (proved in tests/rtl/formal). A writer must send a request only when it holds all of the
// data, as unisono_memory_write does; else it could keep a channel from others.
//
// Latency: request 1 cycle, data 0 cycles (the first beat from 1 cycle after its request), answer 0
// cycles. Throughput: 1 beat per cycle and channel, with none lost between bursts; 1 beat and 1
// answer per cycle and writer.
// Restrictions: INCR bursts of whole beats that do not leave a block of InterleaveBytes; every
// burst in flight of a writer has an id of its own, and it always takes answers. Channels and
// writers are packed arrays, to be wired to named ports where a vendor's tool has to infer
// interfaces.

module unisono_memory_crossbar_write #(
  parameter int unsigned Writers         = 2,
  // A power of two.
  parameter int unsigned Channels        = 2,
  parameter int unsigned DataBytes       = 64,
  parameter int unsigned AddressWidth    = 64,
  // Of the writers' ids. The channels' ids have the writer's number on top.
  parameter int unsigned IdWidth         = 4,
  // A power of two, at least a writer's longest burst.
  parameter int unsigned InterleaveBytes = 4096,
  localparam int unsigned WriterWidth    = (Writers > 1) ? $clog2(Writers) : 1,
  localparam int unsigned ChannelIdWidth = WriterWidth + IdWidth
) (
  input  logic                                    clk_i,
  input  logic                                    rst_ni,

  input  logic [Writers-1:0][IdWidth-1:0]         s_axi_awid,
  input  logic [Writers-1:0][AddressWidth-1:0]    s_axi_awaddr,
  input  logic [Writers-1:0][7:0]                 s_axi_awlen,
  input  logic [Writers-1:0]                      s_axi_awvalid,
  output logic [Writers-1:0]                      s_axi_awready,
  input  logic [Writers-1:0][DataBytes*8-1:0]     s_axi_wdata,
  input  logic [Writers-1:0][DataBytes-1:0]       s_axi_wstrb,
  input  logic [Writers-1:0]                      s_axi_wlast,
  input  logic [Writers-1:0]                      s_axi_wvalid,
  output logic [Writers-1:0]                      s_axi_wready,
  output logic [Writers-1:0][IdWidth-1:0]         s_axi_bid,
  output logic [Writers-1:0][1:0]                 s_axi_bresp,
  output logic [Writers-1:0]                      s_axi_bvalid,
  input  logic [Writers-1:0]                      s_axi_bready,

  output logic [Channels-1:0][ChannelIdWidth-1:0] m_axi_awid,
  output logic [Channels-1:0][AddressWidth-1:0]   m_axi_awaddr,
  output logic [Channels-1:0][7:0]                m_axi_awlen,
  output logic [Channels-1:0][2:0]                m_axi_awsize,
  output logic [Channels-1:0][1:0]                m_axi_awburst,
  output logic [Channels-1:0]                     m_axi_awvalid,
  input  logic [Channels-1:0]                     m_axi_awready,
  output logic [Channels-1:0][DataBytes*8-1:0]    m_axi_wdata,
  output logic [Channels-1:0][DataBytes-1:0]      m_axi_wstrb,
  output logic [Channels-1:0]                     m_axi_wlast,
  output logic [Channels-1:0]                     m_axi_wvalid,
  input  logic [Channels-1:0]                     m_axi_wready,
  input  logic [Channels-1:0][ChannelIdWidth-1:0] m_axi_bid,
  input  logic [Channels-1:0][1:0]                m_axi_bresp,
  input  logic [Channels-1:0]                     m_axi_bvalid,
  output logic [Channels-1:0]                     m_axi_bready
);

  localparam int unsigned ChannelBits  = $clog2(Channels);
  localparam int unsigned ChannelWidth = (Channels > 1) ? ChannelBits : 1;
  localparam int unsigned BlockBits    = $clog2(InterleaveBytes);

  if (Channels < 1 || (Channels & (Channels - 1)) != 0) begin : gen_bad_channels
    $error("unisono_memory_crossbar_write: Channels must be a power of two");
  end
  if (InterleaveBytes < DataBytes || (InterleaveBytes & (InterleaveBytes - 1)) != 0 ||
      BlockBits + ChannelBits >= AddressWidth) begin : gen_bad_interleave
    $error("unisono_memory_crossbar_write: InterleaveBytes must be a power of two");
  end

  typedef logic [AddressWidth-1:0] address_t;

  localparam address_t ChannelMask = address_t'(Channels) - address_t'(1);
  localparam address_t BlockMask   = address_t'(InterleaveBytes) - address_t'(1);
  typedef logic [ChannelWidth-1:0] channel_t;
  typedef logic [WriterWidth-1:0]  writer_t;

  function automatic channel_t channel_of(address_t address);
    return channel_t'((address >> BlockBits) & ChannelMask);
  endfunction

  function automatic address_t local_of(address_t address);
    return ((address >> (BlockBits + ChannelBits)) << BlockBits) |
           (address & BlockMask);
  endfunction

  // Two places each: the burst whose data flows or is the next to flow, and the one behind it.
  logic     [Writers-1:0]  target_valid_q, later_target_valid_q;
  channel_t [Writers-1:0]  target_q, later_target_q;
  logic     [Channels-1:0] owner_valid_q, later_owner_valid_q;
  writer_t  [Channels-1:0] owner_q, later_owner_q;

  logic [Channels-1:0][Writers-1:0] ask, granted;
  logic [Writers-1:0]               flowing, writer_done, request;
  logic [Channels-1:0]              channel_done;
  logic [Channels-1:0]              connected;

  // A writer and a channel are connected when both have come to the same burst.
  always_comb begin
    for (int unsigned w = 0; w < Writers; w++) begin
      flowing[w] = target_valid_q[w] && owner_valid_q[target_q[w]] &&
                   owner_q[target_q[w]] == writer_t'(w);
    end
    for (int unsigned c = 0; c < Channels; c++) begin
      connected[c] = owner_valid_q[c] && target_valid_q[owner_q[c]] &&
                     target_q[owner_q[c]] == channel_t'(c);
    end
  end

  // ---------------------------------------------------------------- requests

  assign request = s_axi_awvalid & ~later_target_valid_q;

  for (genvar c = 0; c < Channels; c++) begin : gen_requests
    logic               ready, open;
    writer_t            index;
    logic [Writers-1:0] grant;

    always_comb begin
      for (int unsigned w = 0; w < Writers; w++) begin
        ask[c][w] = request[w] && channel_of(s_axi_awaddr[w]) == channel_t'(c);
      end
    end

    assign open       = ready && !later_owner_valid_q[c];
    assign granted[c] = open ? grant : '0;

    unisono_round_robin #(
      .Requests(Writers)
    ) u_turn (
      .clk_i,
      .rst_ni,
      .request_i(ask[c]),
      .advance_i(open),
      .grant_o  (grant),
      .index_o  (index)
    );

    unisono_skid #(
      .Width(ChannelIdWidth + AddressWidth + 8)
    ) u_request (
      .clk_i,
      .rst_ni,
      .in_valid_i (granted[c] != '0),
      .in_ready_o (ready),
      .in_data_i  ({index, s_axi_awid[index], local_of(s_axi_awaddr[index]), s_axi_awlen[index]}),
      .out_valid_o(m_axi_awvalid[c]),
      .out_ready_i(m_axi_awready[c]),
      .out_data_o ({m_axi_awid[c], m_axi_awaddr[c], m_axi_awlen[c]})
    );

    assign m_axi_awsize[c]  = 3'($clog2(DataBytes));
    assign m_axi_awburst[c] = 2'b01;  // INCR

    assign channel_done[c] = m_axi_wvalid[c] && m_axi_wready[c] && m_axi_wlast[c];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        owner_valid_q[c]       <= 1'b0;
        later_owner_valid_q[c] <= 1'b0;
      end else if (!owner_valid_q[c] || channel_done[c]) begin
        owner_valid_q[c]       <= later_owner_valid_q[c] || granted[c] != '0;
        later_owner_valid_q[c] <= 1'b0;
      end else begin
        later_owner_valid_q[c] <= later_owner_valid_q[c] || granted[c] != '0;
      end
    end

    always_ff @(posedge clk_i) begin
      if (!owner_valid_q[c] || channel_done[c]) begin
        owner_q[c] <= later_owner_valid_q[c] ? later_owner_q[c] : index;
      end
      if (!later_owner_valid_q[c]) begin
        later_owner_q[c] <= index;
      end
    end
  end

  always_comb begin
    s_axi_awready = '0;
    for (int unsigned c = 0; c < Channels; c++) begin
      s_axi_awready |= granted[c];
    end
  end

  for (genvar w = 0; w < Writers; w++) begin : gen_targets
    channel_t asked;
    assign asked          = channel_of(s_axi_awaddr[w]);
    assign writer_done[w] = s_axi_wvalid[w] && s_axi_wready[w] && s_axi_wlast[w];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        target_valid_q[w]       <= 1'b0;
        later_target_valid_q[w] <= 1'b0;
      end else if (!target_valid_q[w] || writer_done[w]) begin
        target_valid_q[w]       <= later_target_valid_q[w] || s_axi_awready[w];
        later_target_valid_q[w] <= 1'b0;
      end else begin
        later_target_valid_q[w] <= later_target_valid_q[w] || s_axi_awready[w];
      end
    end

    always_ff @(posedge clk_i) begin
      if (!target_valid_q[w] || writer_done[w]) begin
        target_q[w] <= later_target_valid_q[w] ? later_target_q[w] : asked;
      end
      if (!later_target_valid_q[w]) begin
        later_target_q[w] <= asked;
      end
    end
  end

  // ---------------------------------------------------------------- data

  always_comb begin
    for (int unsigned c = 0; c < Channels; c++) begin
      m_axi_wvalid[c] = connected[c] && s_axi_wvalid[owner_q[c]];
      m_axi_wdata[c]  = s_axi_wdata[owner_q[c]];
      m_axi_wstrb[c]  = s_axi_wstrb[owner_q[c]];
      m_axi_wlast[c]  = s_axi_wlast[owner_q[c]];
    end
    for (int unsigned w = 0; w < Writers; w++) begin
      s_axi_wready[w] = flowing[w] && m_axi_wready[target_q[w]];
    end
  end

  // ---------------------------------------------------------------- answers

  logic [Writers-1:0][Channels-1:0] answer, taken;

  for (genvar w = 0; w < Writers; w++) begin : gen_answers
    channel_t            index;
    logic [Channels-1:0] grant;

    always_comb begin
      for (int unsigned c = 0; c < Channels; c++) begin
        answer[w][c] = m_axi_bvalid[c] &&
                       m_axi_bid[c][ChannelIdWidth-1:IdWidth] == writer_t'(w);
      end
    end

    unisono_round_robin #(
      .Requests(Channels)
    ) u_turn (
      .clk_i,
      .rst_ni,
      .request_i(answer[w]),
      .advance_i(s_axi_bready[w]),
      .grant_o  (grant),
      .index_o  (index)
    );

    assign s_axi_bvalid[w] = answer[w] != '0;
    assign taken[w]       = s_axi_bready[w] ? grant : '0;
    assign s_axi_bid[w]   = m_axi_bid[index][IdWidth-1:0];
    assign s_axi_bresp[w] = m_axi_bresp[index];
  end

  always_comb begin
    m_axi_bready = '0;
    for (int unsigned w = 0; w < Writers; w++) begin
      m_axi_bready |= taken[w];
    end
  end

`ifndef SYNTHESIS
  for (genvar w = 0; w < Writers; w++) begin : gen_check
    always_ff @(posedge clk_i) begin
      if (rst_ni && s_axi_bvalid[w]) begin
        assert (s_axi_bready[w])
        else $error("unisono_memory_crossbar_write: a writer does not take an answer");
      end
      if (rst_ni && s_axi_awvalid[w]) begin
        assert ((s_axi_awaddr[w] & BlockMask) +
      (address_t'(s_axi_awlen[w]) + address_t'(1)) * address_t'(DataBytes) <=
      address_t'(InterleaveBytes))
        else $error("unisono_memory_crossbar_write: a burst leaves its channel");
      end
    end
  end
`endif

endmodule
