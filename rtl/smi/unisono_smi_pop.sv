// Receiving end of a channel: unpacks packets into words of elements, tells the sender of room, and
// compares the counts of both ends.
//
// An open beat names the peer, the number of elements, their size and the protocol, as the sender's
// does. Packets that come before wait in the queue in front. A word holds up to `lanes` elements (as
// many as fit, if that is 0) from byte 0, out_count_o of them; words do not reach over the end of a
// packet. The channel closes when the packet with OpLast has been given.
//
// Whole, strict without credits: a packet that is not full may come again with the same elements and
// more (unisono_smi_push); those that were given are not given again.
//
// Counts that differ: behind the message a complaint names both. Elements beyond the expected ones
// are left out; if there are fewer, the channel closes all the same. A packet of another rank than
// the peer's is left out, and complained of.
//
// Control packets, with credits: the first when the channel opens; then one for each Batch packets
// that have left the queue in front, or in strict mode as soon as an element has been popped. None
// behind OpLast. With strict and window 0 an element is asked for when out_ready_i is high. The first
// carries what this end was opened with; without credits it is sent only to a sender that asks.
//
// Ends that differ: the sender compares, and tells of it by a control packet (told_data_i); differ_o
// names both, for a cycle. If the sender had credits it has closed and sent nothing, so this end
// closes, too; otherwise the message goes on.
//
// Latency: 1 cycle, 2 where a packet has come again. Throughput: a word per cycle, also from packet to
// packet. in_ready_o depends on out_ready_i within the cycle.

module unisono_smi_pop #(
  parameter int unsigned PacketBytes = 32,
  parameter int unsigned WordBytes   = 32,
  // Packets after which the sender is told of their places.
  parameter int unsigned Batch       = 4,
  parameter int unsigned MaxRanks    = 128,
  localparam int unsigned Width      = PacketBytes * 8,
  localparam int unsigned LaneBits   = $clog2(WordBytes + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic [unisono_smi_pkg::RankBits-1:0] rank_i,

  input  logic                   open_valid_i,
  output logic                   open_ready_o,
  input  unisono_smi_pkg::open_t open_i,
  // With open_i: packets come out of a tree, so the peer has no end of this channel.
  input  logic                   tree_i,

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

  // Control packets from senders; each is taken at once.
  input  logic                   told_valid_i,
  input  logic [Width-1:0]       told_data_i,

  // For a cycle each.
  output logic                        complaint_valid_o,
  output unisono_smi_pkg::complaint_t complaint_o,
  output logic                        differ_valid_o,
  output unisono_smi_pkg::differ_t    differ_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned HeaderBytes  = header_bytes(PacketBytes);
  localparam int unsigned PayloadBytes = PacketBytes - HeaderBytes;

  typedef logic [LaneBits-1:0] lanes_t;

  open_t                     channel_q;
  logic                      active_q, tree_q;
  logic [31:0]               left_q, got_q;

  // The packet that is being given: its elements, how many are left of it, whether it is the last.
  logic [PayloadBytes*8-1:0] payload_q;
  logic [CountBits-1:0]      part_q;
  logic                      last_q;
  // Whole: elements of the packet that came before, in one that was not full; and those in front of
  // payload_q, which leave it before anything is given.
  logic [CountBits-1:0]      before_q, skip_q, full, fresh_count;
  logic                      whole;

  lanes_t      fits, lanes, lanes_q, count;
  logic        give, fresh, closing, part_done, breaks;
  header_t     header;
  logic [31:0] wanted;
  logic        foreign, take;

  // Settled when the channel opens.
  assign fits  = lanes_t'(WordBytes >> open_i.size);
  always_ff @(posedge clk_i) begin
    if (!active_q) begin
      lanes_q <= open_i.lanes != '0 && 32'(open_i.lanes) < 32'(fits) ? lanes_t'(open_i.lanes) : fits;
    end
  end
  assign lanes = lanes_q;
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
  assign wanted  = 32'(fresh_count) < left_q ? 32'(fresh_count) : left_q;

  assign whole       = channel_q.strict && !channel_q.credits;
  assign full        = CountBits'(PayloadBytes >> channel_q.size);
  assign fresh_count = whole ? header.count - before_q : header.count;

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
      if (closing || breaks) begin
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
      tree_q    <= tree_i;
      left_q    <= open_i.count;
      got_q     <= '0;
    end else if (take) begin
      left_q    <= left_q - wanted;
      got_q     <= got_q + 32'(fresh_count);
    end
    if (take) begin
      payload_q <= in_data_i[PayloadBytes*8-1:0];
    end else if (give || skip_q != '0) begin
      payload_q <= payload_q >> ((skip_q != '0 ? 16'(skip_q) : 16'(count))
                                 << (4'd3 + 4'(channel_q.size)));
    end
    if (!active_q) begin
      before_q <= '0;
      skip_q   <= '0;
    end else if (take) begin
      before_q <= !whole || header.count >= full ? '0 : header.count;
      skip_q   <= whole ? before_q : '0;
    end else begin
      skip_q   <= '0;
    end
  end
  assign open_ready_o = !active_q;

  localparam int unsigned Shown = PayloadBytes < WordBytes ? PayloadBytes : WordBytes;
  assign out_valid_o = active_q && part_q != '0 && skip_q == '0;
  assign out_count_o = count;
  assign out_data_o  = (WordBytes * 8)'(payload_q[Shown*8-1:0]);
  assign out_last_o  = left_q == '0 && CountBits'(count) == part_q;

  // ---- What senders have told: that one waits for credits, that the ends differ.
  localparam int unsigned PeerBits    = MaxRanks > 1 ? $clog2(MaxRanks) : 1;
  localparam int unsigned ControlBits = $bits(control_t);
  control_t            told;
  header_t             told_by;
  logic                asks, differs, make, asked_now_q, answer_q, differ_q;
  logic [MaxRanks-1:0] waiting_q, counted_q;
  logic [3:0]          message;
  // Of each rank: its messages, modulo 16, and for which one it waits.
  (* ram_style = "distributed" *) logic [3:0] messages [MaxRanks];
  (* ram_style = "distributed" *) logic [3:0] awaited [MaxRanks];
  logic [PeerBits-1:0] peer;
  opening_t            mine;
  differ_t             found_q;

  assign told    = control_t'(told_data_i[ControlBits-1:0]);
  assign told_by = header_of(PacketBytes, told_data_i[Width-1-:WideHeaderBits]);
  assign asks    = told_valid_i && told.kind == ControlAsks;
  assign differs = told_valid_i && told.kind == ControlDiffer && active_q && !tree_q
                   && told_by.src == channel_q.peer && told.message == message;
  assign breaks  = differs && told.opening.credits;
  assign peer    = PeerBits'(channel_q.peer);
  assign mine    = opening_of(channel_q);
  logic unused_told;
  assign unused_told = ^{told, told_by, told_data_i};

  // The number of a message is counted when it ends.
  logic over;
  assign message = counted_q[peer] ? messages[peer] : '0;
  assign over    = active_q && !tree_q && (closing || breaks);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      counted_q <= '0;
    end else if (over) begin
      counted_q[peer] <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (over) begin
      messages[peer] <= message + 4'd1;
    end
    if (asks) begin
      awaited[PeerBits'(told_by.src)] <= told.message;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      waiting_q   <= '0;
      asked_now_q <= 1'b0;
    end else begin
      asked_now_q <= active_q && !tree_q && waiting_q[peer] && awaited[peer] == message;
      if (active_q && asked_now_q) begin
        waiting_q[peer] <= 1'b0;
      end
      if (asks && 32'(told_by.src) < MaxRanks) begin
        waiting_q[PeerBits'(told_by.src)] <= 1'b1;
      end
    end
  end
  // With credits this end tells of itself anyway.
  always_ff @(posedge clk_i) begin
    if (!active_q) begin
      answer_q <= 1'b0;
    end else if (asked_now_q && !channel_q.credits) begin
      answer_q <= 1'b1;
    end else if (make) begin
      answer_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    differ_q <= rst_ni && differs;
    found_q  <= '{peer: channel_q.peer, mine: mine, theirs: told.opening};
  end
  assign differ_valid_o = differ_q;
  assign differ_o       = found_q;

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

  assign strict = channel_q.strict && channel_q.credits;
  assign freed  = fresh ? 32'd1 : '0;
  assign popped = give ? 32'(count) : '0;
  // Elements that are left out count as popped.
  assign excess = take ? 32'(fresh_count) - wanted : '0;

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
  logic             control_valid_q, control_free;
  logic [Width-1:0] control_data_q;

  assign control_free = !control_valid_q || sent;
  assign make         = active_q && (channel_q.credits ? due : answer_q) && control_free;

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
  control_t says;
  assign says = '{
    opening:  mine,
    message:  message,
    kind:     ControlPlaces,
    first:    first_q,
    packets:  packets_q,
    elements: elements_q,
    default:  '0
  };
  logic [WideHeaderBits-1:0] packed_tell;
  assign packed_tell = header_bits(PacketBytes, tell);
  logic unused_tell;
  assign unused_tell = ^packed_tell;
  always_ff @(posedge clk_i) begin
    if (control_free) begin
      control_data_q <= {packed_tell[WideHeaderBits-1-:HeaderBytes*8],
                         (PayloadBytes * 8)'(says)};
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
