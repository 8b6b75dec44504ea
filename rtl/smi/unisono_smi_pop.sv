// Receiving end of a channel: unpacks packets into words of elements, tells the sender of room, and
// compares the counts of both ends.
//
// An open beat names the peer, the number of elements, their size and the protocol, as the sender's
// does. Packets that come before wait in the queue in front. A word holds up to `lanes` elements (as
// many as fit, if that is 0) from byte 0, out_count_o of them; words do not reach over the end of a
// packet. The channel closes when the packet with OpLast has been given.
//
// Counts that differ: behind the message a complaint names both. Elements beyond the expected ones
// are left out; if there are fewer, the channel closes all the same. A packet of another rank than
// the peer's is left out, and complained of.
//
// Control packets, with credits: the first when the channel opens; then one for each Batch packets
// that have left the queue in front, or in strict mode as soon as an element has been popped. None
// behind OpLast. With strict and window 0 an element is asked for when out_ready_i is high.
//
// Latency: 1 cycle. Throughput: a word per cycle, also from packet to packet. in_ready_o depends on
// out_ready_i within the cycle.

module unisono_smi_pop #(
  parameter int unsigned PacketBytes = 32,
  parameter int unsigned WordBytes   = 32,
  // Packets after which the sender is told of their places.
  parameter int unsigned Batch       = 4,
  localparam int unsigned Width      = PacketBytes * 8,
  localparam int unsigned LaneBits   = $clog2(WordBytes + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic [unisono_smi_pkg::RankBits-1:0] rank_i,

  input  logic                   open_valid_i,
  output logic                   open_ready_o,
  input  unisono_smi_pkg::open_t open_i,

  input  logic                   in_valid_i,
  output logic                   in_ready_o,
  input  logic [Width-1:0]       in_data_i,

  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [WordBytes*8-1:0] out_data_o,
  output logic [LaneBits-1:0]    out_count_o,
  // With the last element of the message.
  output logic                   out_last_o,

  output logic                   control_valid_o,
  input  logic                   control_ready_i,
  output logic [Width-1:0]       control_data_o,

  // For a cycle each.
  output logic                        complaint_valid_o,
  output unisono_smi_pkg::complaint_t complaint_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned HeaderBytes  = header_bytes(PacketBytes);
  localparam int unsigned PayloadBytes = PacketBytes - HeaderBytes;

  typedef logic [LaneBits-1:0] lanes_t;

  open_t                     channel_q;
  logic                      active_q;
  logic [31:0]               left_q, got_q;

  // The packet that is being given: its elements, how many are left of it, whether it is the last.
  logic [PayloadBytes*8-1:0] payload_q;
  logic [CountBits-1:0]      part_q;
  logic                      last_q;

  lanes_t      fits, lanes, count;
  logic        give, fresh, closing, part_done;
  header_t     header;
  logic [31:0] wanted;
  logic        foreign, take;

  assign fits  = lanes_t'(WordBytes >> channel_q.size);
  assign lanes = channel_q.lanes != '0 && 32'(channel_q.lanes) < 32'(fits)
                 ? lanes_t'(channel_q.lanes) : fits;
  assign count = 32'(part_q) < 32'(lanes) ? lanes_t'(part_q) : lanes;
  assign give  = out_valid_o && out_ready_i;

  // The packet's elements are all given, or there were none.
  assign part_done  = part_q == '0 || (give && CountBits'(count) == part_q);
  assign closing    = active_q && last_q && part_done;
  assign in_ready_o = active_q && !last_q && part_done;
  assign fresh      = in_valid_i && in_ready_o;

  assign header  = header_of(PacketBytes, in_data_i[Width-1-:WideHeaderBits]);
  logic unused_header;
  assign unused_header = ^header;
  assign foreign = fresh && header.src != channel_q.peer;
  assign take    = fresh && !foreign;
  // Elements of the packet that the receiver expects.
  assign wanted  = 32'(header.count) < left_q ? 32'(header.count) : left_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      part_q   <= '0;
      last_q   <= 1'b0;
    end else if (!active_q) begin
      active_q <= open_valid_i;
      part_q   <= '0;
      last_q   <= 1'b0;
    end else begin
      if (closing) begin
        active_q <= 1'b0;
      end
      if (take) begin
        part_q <= CountBits'(wanted);
        last_q <= header.op == OpLast;
      end else if (give) begin
        part_q <= part_q - CountBits'(count);
      end
    end
  end

  // left_q: expected elements that no packet has brought yet.
  always_ff @(posedge clk_i) begin
    if (!active_q) begin
      channel_q <= open_i;
      left_q    <= open_i.count;
      got_q     <= '0;
    end else if (take) begin
      left_q    <= left_q - wanted;
      got_q     <= got_q + 32'(header.count);
    end
    if (take) begin
      payload_q <= in_data_i[PayloadBytes*8-1:0];
    end else if (give) begin
      payload_q <= payload_q >> (16'(count) << (4'd3 + 4'(channel_q.size)));
    end
  end
  assign open_ready_o = !active_q;

  localparam int unsigned Shown = PayloadBytes < WordBytes ? PayloadBytes : WordBytes;
  assign out_valid_o = active_q && part_q != '0;
  assign out_count_o = count;
  assign out_data_o  = (WordBytes * 8)'(payload_q[Shown*8-1:0]);
  assign out_last_o  = left_q == '0 && CountBits'(count) == part_q;

  // ---- Complaints.
  logic differ;
  assign differ            = closing && got_q != channel_q.count;
  assign complaint_valid_o = differ || foreign;
  assign complaint_o       = '{
    foreign:  !differ,
    src:      differ ? channel_q.peer : header.src,
    expected: channel_q.count,
    got:      got_q
  };

  // ---- Credits.
  logic        first_q, due, sent, asked_q, ask;
  logic [31:0] packets_q, elements_q, freed, popped, excess;
  logic        strict;
  header_t     tell;

  assign strict = channel_q.strict;
  assign freed  = fresh ? 32'd1 : '0;
  assign popped = give ? 32'(count) : '0;
  // Elements that are left out count as popped.
  assign excess = take ? 32'(header.count) - wanted : '0;

  // With window 0 each element is asked for by hand, and its pop gives nothing.
  logic by_hand;
  assign by_hand = strict && channel_q.window == '0;
  // Behind the first control packet, which tells of no elements.
  assign ask     = active_q && by_hand && !first_q && !asked_q && out_ready_i && part_q == '0 && !last_q
                   && left_q != '0;

  assign due  = first_q || (!last_q && (packets_q >= 32'(Batch)
                                        || (strict && elements_q != '0)));
  assign sent = control_valid_o && control_ready_i;

  // A register, so that an offer stays as it is while more is freed.
  logic             control_valid_q, control_free, make;
  logic [Width-1:0] control_data_q;

  assign control_free = !control_valid_q || sent;
  assign make         = active_q && channel_q.credits && due && control_free;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      control_valid_q <= 1'b0;
    end else if (control_free) begin
      control_valid_q <= make;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!active_q) begin
      first_q    <= 1'b1;
      packets_q  <= '0;
      elements_q <= '0;
      asked_q    <= 1'b0;
    end else begin
      first_q    <= first_q && !make;
      // The first one tells of the whole queue; nothing has left it before.
      packets_q  <= (make ? '0 : packets_q) + freed;
      elements_q <= (make ? '0 : elements_q) + (by_hand ? (ask ? 32'd1 : '0) : popped) + excess;
      if (ask) begin
        asked_q <= 1'b1;
      end else if (give) begin
        asked_q <= 1'b0;
      end
    end
  end

  assign tell = '{
    count: '0,
    op:    OpSynch,
    port:  channel_q.port,
    dst:   channel_q.peer,
    src:   rank_i
  };
  logic [WideHeaderBits-1:0] packed_tell;
  assign packed_tell = header_bits(PacketBytes, tell);
  logic unused_tell;
  assign unused_tell = ^packed_tell;
  always_ff @(posedge clk_i) begin
    if (control_free) begin
      control_data_q <= {packed_tell[WideHeaderBits-1-:HeaderBytes*8],
                         (PayloadBytes * 8)'({first_q, packets_q, elements_q})};
    end
  end
  assign control_valid_o = control_valid_q;
  assign control_data_o  = control_data_q;

`ifndef SYNTHESIS
  // out_last_o and the word stay; ready may fall.
  unisono_handshake_check #(
    .Width(WordBytes * 8 + LaneBits)
  ) u_check_out (
    .clk_i,
    .rst_ni,
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i ({out_data_o, out_count_o})
  );
  unisono_handshake_check #(
    .Width(Width)
  ) u_check_control (
    .clk_i,
    .rst_ni,
    .valid_i(control_valid_o),
    .ready_i(control_ready_i),
    .data_i (control_data_o)
  );
`endif

endmodule
