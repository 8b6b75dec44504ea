// Several readers on several memory channels: routes requests by address, round robin per burst at
// each channel, and answers by id, round robin per beat at each reader.
//
// The channels hold memory in turns of InterleaveBytes; a channel sees addresses without the bits
// that chose it. Readers on different channels run at the same time, and one reader's bursts on
// several channels too.
//
// Answers need no order between bursts, because the readers give every burst in flight an id of
// its own and always take their answers (unisono_memory_read does both). So no channel ever waits
// for another, and there is no deadlock however the channels order their answers.
//
// Latency: request 1 cycle, answer 0 cycles.
// Throughput: 1 request and 1 beat per cycle and channel, 1 beat per cycle and reader.
// Restrictions: INCR bursts of whole beats that do not leave a block of InterleaveBytes; ids and
// s_axi_rready as above. Channels and readers are packed arrays, to be wired to named ports where
// a vendor's tool has to infer interfaces.

module unisono_memory_crossbar_read #(
  parameter int unsigned Readers         = 3,
  // A power of two.
  parameter int unsigned Channels        = 2,
  parameter int unsigned DataBytes       = 64,
  parameter int unsigned AddressWidth    = 64,
  // Of the readers' ids. The channels' ids have the reader's number on top.
  parameter int unsigned IdWidth         = 4,
  // A power of two, at least a reader's longest burst.
  parameter int unsigned InterleaveBytes = 4096,
  localparam int unsigned ReaderWidth    = (Readers > 1) ? $clog2(Readers) : 1,
  localparam int unsigned ChannelIdWidth = ReaderWidth + IdWidth
) (
  input  logic                                    clk_i,
  input  logic                                    rst_ni,

  input  logic [Readers-1:0][IdWidth-1:0]         s_axi_arid,
  input  logic [Readers-1:0][AddressWidth-1:0]    s_axi_araddr,
  input  logic [Readers-1:0][7:0]                 s_axi_arlen,
  input  logic [Readers-1:0]                      s_axi_arvalid,
  output logic [Readers-1:0]                      s_axi_arready,
  output logic [Readers-1:0][IdWidth-1:0]         s_axi_rid,
  output logic [Readers-1:0][DataBytes*8-1:0]     s_axi_rdata,
  output logic [Readers-1:0][1:0]                 s_axi_rresp,
  output logic [Readers-1:0]                      s_axi_rlast,
  output logic [Readers-1:0]                      s_axi_rvalid,
  input  logic [Readers-1:0]                      s_axi_rready,

  output logic [Channels-1:0][ChannelIdWidth-1:0] m_axi_arid,
  output logic [Channels-1:0][AddressWidth-1:0]   m_axi_araddr,
  output logic [Channels-1:0][7:0]                m_axi_arlen,
  output logic [Channels-1:0][2:0]                m_axi_arsize,
  output logic [Channels-1:0][1:0]                m_axi_arburst,
  output logic [Channels-1:0]                     m_axi_arvalid,
  input  logic [Channels-1:0]                     m_axi_arready,
  input  logic [Channels-1:0][ChannelIdWidth-1:0] m_axi_rid,
  input  logic [Channels-1:0][DataBytes*8-1:0]    m_axi_rdata,
  input  logic [Channels-1:0][1:0]                m_axi_rresp,
  input  logic [Channels-1:0]                     m_axi_rlast,
  input  logic [Channels-1:0]                     m_axi_rvalid,
  output logic [Channels-1:0]                     m_axi_rready
);

  localparam int unsigned ChannelBits = $clog2(Channels);
  localparam int unsigned BlockBits   = $clog2(InterleaveBytes);

  if (Channels < 1 || (Channels & (Channels - 1)) != 0) begin : gen_bad_channels
    $error("unisono_memory_crossbar_read: Channels must be a power of two");
  end
  if (InterleaveBytes < DataBytes || (InterleaveBytes & (InterleaveBytes - 1)) != 0 ||
      BlockBits + ChannelBits >= AddressWidth) begin : gen_bad_interleave
    $error("unisono_memory_crossbar_read: InterleaveBytes must be a power of two");
  end

  typedef logic [AddressWidth-1:0] address_t;

  localparam address_t ChannelMask = address_t'(Channels) - address_t'(1);
  localparam address_t BlockMask   = address_t'(InterleaveBytes) - address_t'(1);

  function automatic int unsigned channel_of(address_t address);
    return 32'((address >> BlockBits) & ChannelMask);
  endfunction

  function automatic address_t local_of(address_t address);
    return ((address >> (BlockBits + ChannelBits)) << BlockBits) |
           (address & BlockMask);
  endfunction

  // ---------------------------------------------------------------- requests

  logic [Channels-1:0][Readers-1:0] ask, granted;

  for (genvar c = 0; c < Channels; c++) begin : gen_requests
    logic                   ready;
    logic [ReaderWidth-1:0] index;

    always_comb begin
      for (int unsigned r = 0; r < Readers; r++) begin
        ask[c][r] = s_axi_arvalid[r] && channel_of(s_axi_araddr[r]) == c;
      end
    end

    logic [Readers-1:0] grant;
    assign granted[c] = ready ? grant : '0;

    unisono_round_robin #(
      .Requests(Readers)
    ) u_turn (
      .clk_i,
      .rst_ni,
      .request_i(ask[c]),
      .advance_i(ready),
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
      .in_data_i  ({index, s_axi_arid[index], local_of(s_axi_araddr[index]), s_axi_arlen[index]}),
      .out_valid_o(m_axi_arvalid[c]),
      .out_ready_i(m_axi_arready[c]),
      .out_data_o ({m_axi_arid[c], m_axi_araddr[c], m_axi_arlen[c]})
    );

    assign m_axi_arsize[c]  = 3'($clog2(DataBytes));
    assign m_axi_arburst[c] = 2'b01;  // INCR
  end

  always_comb begin
    s_axi_arready = '0;
    for (int unsigned c = 0; c < Channels; c++) begin
      s_axi_arready |= granted[c];
    end
  end

  // ---------------------------------------------------------------- answers

  logic [Readers-1:0][Channels-1:0] answer, taken;

  for (genvar r = 0; r < Readers; r++) begin : gen_answers
    localparam int unsigned SelectWidth = (Channels > 1) ? ChannelBits : 1;
    logic [SelectWidth-1:0] index;
    logic [Channels-1:0]    grant;

    always_comb begin
      for (int unsigned c = 0; c < Channels; c++) begin
        answer[r][c] = m_axi_rvalid[c] &&
                       m_axi_rid[c][ChannelIdWidth-1:IdWidth] == ReaderWidth'(r);
      end
    end

    unisono_round_robin #(
      .Requests(Channels)
    ) u_turn (
      .clk_i,
      .rst_ni,
      .request_i(answer[r]),
      .advance_i(s_axi_rready[r]),
      .grant_o  (grant),
      .index_o  (index)
    );

    assign s_axi_rvalid[r] = answer[r] != '0;
    assign taken[r]       = s_axi_rready[r] ? grant : '0;
    assign s_axi_rid[r]   = m_axi_rid[index][IdWidth-1:0];
    assign s_axi_rdata[r] = m_axi_rdata[index];
    assign s_axi_rresp[r] = m_axi_rresp[index];
    assign s_axi_rlast[r] = m_axi_rlast[index];
  end

  always_comb begin
    m_axi_rready = '0;
    for (int unsigned r = 0; r < Readers; r++) begin
      m_axi_rready |= taken[r];
    end
  end

`ifndef SYNTHESIS
  for (genvar r = 0; r < Readers; r++) begin : gen_check
    always_ff @(posedge clk_i) begin
      if (rst_ni && s_axi_rvalid[r]) begin
        assert (s_axi_rready[r])
        else $error("unisono_memory_crossbar_read: a reader does not take an answer");
      end
      if (rst_ni && s_axi_arvalid[r]) begin
        assert ((s_axi_araddr[r] & BlockMask) +
      (address_t'(s_axi_arlen[r]) + address_t'(1)) * address_t'(DataBytes) <=
      address_t'(InterleaveBytes))
        else $error("unisono_memory_crossbar_read: a burst leaves its channel");
      end
    end
  end
`endif

endmodule
