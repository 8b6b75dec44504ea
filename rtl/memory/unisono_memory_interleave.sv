// One logical AXI4 port over several memory channels that it has for itself.
//
// The channels hold memory in turns of InterleaveBytes; a channel sees addresses without the bits
// that chose it. Answers return in the order of requests, over all channels and whatever their ids,
// which is more than AXI4 demands: each direction remembers, per burst in flight, its channel.
//
// A channel may not be shared with other ports in front of memory that answers in order: two ports
// could then wait for one another's answers. unisono_memory_crossbar_read and _write share
// channels.
//
// Latency: 0 cycles for requests, data and answers (the channel of a burst is known 1 cycle after
// its request). Throughput: 1 request, 1 beat of each direction and 1 answer per cycle.
// Restrictions: INCR bursts of whole beats that do not leave a block of InterleaveBytes. Channels
// are packed arrays, to be wired to named ports where a vendor's tool has to infer interfaces.

module unisono_memory_interleave #(
  // A power of two, at least 2.
  parameter int unsigned Channels        = 2,
  parameter int unsigned DataBytes       = 64,
  parameter int unsigned AddressWidth    = 64,
  parameter int unsigned IdWidth         = 4,
  // A power of two, at least the longest burst.
  parameter int unsigned InterleaveBytes = 4096,
  // Bursts in flight per direction.
  parameter int unsigned Outstanding     = 32
) (
  input  logic                                  clk_i,
  input  logic                                  rst_ni,

  input  logic [IdWidth-1:0]                    s_axi_arid,
  input  logic [AddressWidth-1:0]               s_axi_araddr,
  input  logic [7:0]                            s_axi_arlen,
  input  logic [2:0]                            s_axi_arsize,
  input  logic [1:0]                            s_axi_arburst,
  input  logic                                  s_axi_arvalid,
  output logic                                  s_axi_arready,
  output logic [IdWidth-1:0]                    s_axi_rid,
  output logic [DataBytes*8-1:0]                s_axi_rdata,
  output logic [1:0]                            s_axi_rresp,
  output logic                                  s_axi_rlast,
  output logic                                  s_axi_rvalid,
  input  logic                                  s_axi_rready,
  input  logic [IdWidth-1:0]                    s_axi_awid,
  input  logic [AddressWidth-1:0]               s_axi_awaddr,
  input  logic [7:0]                            s_axi_awlen,
  input  logic [2:0]                            s_axi_awsize,
  input  logic [1:0]                            s_axi_awburst,
  input  logic                                  s_axi_awvalid,
  output logic                                  s_axi_awready,
  input  logic [DataBytes*8-1:0]                s_axi_wdata,
  input  logic [DataBytes-1:0]                  s_axi_wstrb,
  input  logic                                  s_axi_wlast,
  input  logic                                  s_axi_wvalid,
  output logic                                  s_axi_wready,
  output logic [IdWidth-1:0]                    s_axi_bid,
  output logic [1:0]                            s_axi_bresp,
  output logic                                  s_axi_bvalid,
  input  logic                                  s_axi_bready,

  output logic [Channels-1:0][IdWidth-1:0]      m_axi_arid,
  output logic [Channels-1:0][AddressWidth-1:0] m_axi_araddr,
  output logic [Channels-1:0][7:0]              m_axi_arlen,
  output logic [Channels-1:0][2:0]              m_axi_arsize,
  output logic [Channels-1:0][1:0]              m_axi_arburst,
  output logic [Channels-1:0]                   m_axi_arvalid,
  input  logic [Channels-1:0]                   m_axi_arready,
  input  logic [Channels-1:0][IdWidth-1:0]      m_axi_rid,
  input  logic [Channels-1:0][DataBytes*8-1:0]  m_axi_rdata,
  input  logic [Channels-1:0][1:0]              m_axi_rresp,
  input  logic [Channels-1:0]                   m_axi_rlast,
  input  logic [Channels-1:0]                   m_axi_rvalid,
  output logic [Channels-1:0]                   m_axi_rready,
  output logic [Channels-1:0][IdWidth-1:0]      m_axi_awid,
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
  input  logic [Channels-1:0][IdWidth-1:0]      m_axi_bid,
  input  logic [Channels-1:0][1:0]              m_axi_bresp,
  input  logic [Channels-1:0]                   m_axi_bvalid,
  output logic [Channels-1:0]                   m_axi_bready
);

  localparam int unsigned ChannelBits = $clog2(Channels);
  localparam int unsigned BlockBits   = $clog2(InterleaveBytes);

  if (Channels < 2 || (Channels & (Channels - 1)) != 0) begin : gen_bad_channels
    $error("unisono_memory_interleave: Channels must be a power of two, at least 2");
  end
  if (InterleaveBytes < DataBytes || (InterleaveBytes & (InterleaveBytes - 1)) != 0 ||
      BlockBits + ChannelBits >= AddressWidth) begin : gen_bad_interleave
    $error("unisono_memory_interleave: InterleaveBytes must be a power of two below the memory");
  end

  typedef logic [AddressWidth-1:0] address_t;
  typedef logic [ChannelBits-1:0]  channel_t;

  localparam address_t BlockMask = address_t'(InterleaveBytes) - address_t'(1);

  function automatic address_t local_of(address_t address);
    return ((address >> (BlockBits + ChannelBits)) << BlockBits) | (address & BlockMask);
  endfunction

  // Channels of the bursts whose answers, data and write answers are still to come.
  channel_t read_asked, read_channel, write_asked, data_channel, done_channel;
  logic     read_room, read_valid, data_room, data_valid, done_room, done_valid;
  logic [$clog2(Outstanding + 1)-1:0] unused_reads, unused_data, unused_done;

  assign read_asked    = s_axi_araddr[BlockBits +: ChannelBits];
  assign write_asked   = s_axi_awaddr[BlockBits +: ChannelBits];
  assign s_axi_arready = read_room && m_axi_arready[read_asked];
  assign s_axi_awready = data_room && done_room && m_axi_awready[write_asked];

  unisono_fifo #(
    .Width(ChannelBits),
    .Depth(Outstanding)
  ) u_reads (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_axi_arvalid && s_axi_arready),
    .in_ready_o (read_room),
    .in_data_i  (read_asked),
    .out_valid_o(read_valid),
    .out_ready_i(s_axi_rvalid && s_axi_rready && s_axi_rlast),
    .out_data_o (read_channel),
    .count_o    (unused_reads)
  );

  unisono_fifo #(
    .Width(ChannelBits),
    .Depth(Outstanding)
  ) u_data (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_axi_awvalid && s_axi_awready),
    .in_ready_o (data_room),
    .in_data_i  (write_asked),
    .out_valid_o(data_valid),
    .out_ready_i(s_axi_wvalid && s_axi_wready && s_axi_wlast),
    .out_data_o (data_channel),
    .count_o    (unused_data)
  );

  unisono_fifo #(
    .Width(ChannelBits),
    .Depth(Outstanding)
  ) u_done (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_axi_awvalid && s_axi_awready),
    .in_ready_o (done_room),
    .in_data_i  (write_asked),
    .out_valid_o(done_valid),
    .out_ready_i(s_axi_bvalid && s_axi_bready),
    .out_data_o (done_channel),
    .count_o    (unused_done)
  );

  always_comb begin
    for (int unsigned c = 0; c < Channels; c++) begin
      m_axi_arid[c]    = s_axi_arid;
      m_axi_araddr[c]  = local_of(s_axi_araddr);
      m_axi_arlen[c]   = s_axi_arlen;
      m_axi_arsize[c]  = s_axi_arsize;
      m_axi_arburst[c] = s_axi_arburst;
      m_axi_arvalid[c] = s_axi_arvalid && read_room && read_asked == channel_t'(c);
      m_axi_rready[c]  = s_axi_rready && read_valid && read_channel == channel_t'(c);
      m_axi_awid[c]    = s_axi_awid;
      m_axi_awaddr[c]  = local_of(s_axi_awaddr);
      m_axi_awlen[c]   = s_axi_awlen;
      m_axi_awsize[c]  = s_axi_awsize;
      m_axi_awburst[c] = s_axi_awburst;
      m_axi_awvalid[c] = s_axi_awvalid && data_room && done_room &&
                                write_asked == channel_t'(c);
      m_axi_wdata[c]   = s_axi_wdata;
      m_axi_wstrb[c]   = s_axi_wstrb;
      m_axi_wlast[c]   = s_axi_wlast;
      m_axi_wvalid[c]  = s_axi_wvalid && data_valid && data_channel == channel_t'(c);
      m_axi_bready[c]  = s_axi_bready && done_valid && done_channel == channel_t'(c);
    end
  end

  assign s_axi_rid    = m_axi_rid[read_channel];
  assign s_axi_rdata  = m_axi_rdata[read_channel];
  assign s_axi_rresp  = m_axi_rresp[read_channel];
  assign s_axi_rlast  = m_axi_rlast[read_channel];
  assign s_axi_rvalid = read_valid && m_axi_rvalid[read_channel];
  assign s_axi_wready = data_valid && m_axi_wready[data_channel];
  assign s_axi_bid    = m_axi_bid[done_channel];
  assign s_axi_bresp  = m_axi_bresp[done_channel];
  assign s_axi_bvalid = done_valid && m_axi_bvalid[done_channel];

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && s_axi_arvalid) begin
      assert ((((s_axi_araddr & BlockMask) >> s_axi_arsize) + address_t'(s_axi_arlen) + address_t'(1)) <<
    s_axi_arsize <= address_t'(InterleaveBytes))
      else $error("unisono_memory_interleave: a read burst leaves its channel");
    end
    if (rst_ni && s_axi_awvalid) begin
      assert ((((s_axi_awaddr & BlockMask) >> s_axi_awsize) + address_t'(s_axi_awlen) + address_t'(1)) <<
    s_axi_awsize <= address_t'(InterleaveBytes))
      else $error("unisono_memory_interleave: a write burst leaves its channel");
    end
  end
`endif

endmodule
