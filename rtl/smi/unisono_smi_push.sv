// Sending end of a channel: packs elements of 1, 2, 4 or 8 bytes into packets.
//
// An open beat names the peer, the port, the number of elements, their size and the protocol; the
// channel closes by itself behind its last element, whose packet carries OpLast. A word brings
// in_count_i elements (0 is allowed, for a flush alone) from byte 0. A packet leaves when it is full,
// behind a word with in_flush_i, behind the last element, and when no element has come for
// IdleFlush cycles: what was pushed always gets on its way. A message of no elements is one packet.
//
// Protocols. Eager: packets leave as the network takes them. With credits: the receiver has told of
// places for packets before they leave. Strict, with credits: besides, in_ready_o is low while
// `window` elements are under way that have not been popped; with window 0 an element is taken when
// the receiver asks for one. Whole, strict without credits, is what unisono_smi_reduce needs: packet i
// begins with the same element at every end, whoever flushes. A packet that leaves before it is full
// keeps its elements here; one with the same elements and more follows it, until a full one has left.
//
// Control packets (OpSynch, control_t), from the receiver: elements that were popped since the last
// one, packets likewise; and in the first of a message what it was opened with. Each is taken at
// once. The first is remembered for each rank until a channel to it is opened, and so is an element
// that was asked for behind it; others count only if they come from the peer of the open channel
// behind its first.
//
// Ends that differ are named by differ_o, for a cycle. Counts: the message goes on. Size, window,
// strict or credits: the receiver is told, so that it names them too; who waits for credits closes
// (a word that is on offer then is the next channel's), who is eager goes on. A sender that has no
// credits after AskAfter cycles asks, because a receiver that is eager tells of itself only then.
// Both ends count their messages, so that what is said of another message is not compared.
//
// Latency: 2 cycles from the word that fills a packet to out_valid_o. Throughput: a word per cycle,
// and a packet per cycle. in_ready_o depends on out_ready_i within the cycle.

module unisono_smi_push #(
  parameter int unsigned PacketBytes = 32,
  // Bytes of a word of elements: at least 8, at most what a packet carries rounded up.
  parameter int unsigned WordBytes   = 32,
  parameter int unsigned MaxRanks    = 128,
  // Places that a receiver's queue has for one sender.
  parameter int unsigned Window      = 12,
  parameter int unsigned IdleFlush   = 64,
  parameter int unsigned AskAfter    = 64,
  localparam int unsigned Width      = PacketBytes * 8,
  localparam int unsigned LaneBits   = $clog2(WordBytes + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic [unisono_smi_pkg::RankBits-1:0] rank_i,

  input  logic                   open_valid_i,
  output logic                   open_ready_o,
  // Its field `lanes` is the receiver's.
  input  unisono_smi_pkg::open_t open_i,
  // With open_i: packets go into a tree, so no peer has an end of this channel.
  input  logic                   tree_i,

  input  logic                   in_valid_i,
  output logic                   in_ready_o,
  input  logic [WordBytes*8-1:0] in_data_i,
  input  logic [LaneBits-1:0]    in_count_i,
  input  logic                   in_flush_i,

  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [Width-1:0]       out_data_o,

  input  logic                   control_valid_i,
  output logic                   control_ready_o,
  input  logic [Width-1:0]       control_data_i,

  output logic                   differ_valid_o,
  output unisono_smi_pkg::differ_t differ_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned PayloadBytes = PacketBytes - header_bytes(PacketBytes);
  localparam int unsigned HeldBytes    = PayloadBytes + WordBytes;
  localparam int unsigned FillBits     = $clog2(HeldBytes + 1);
  localparam int unsigned IdleBits     = $clog2(IdleFlush + 1);
  localparam int unsigned PlaceBits    = $clog2(Window + 1);
  localparam int unsigned PeerBits     = MaxRanks > 1 ? $clog2(MaxRanks) : 1;

  if (WordBytes < 8 || WordBytes > PacketBytes) begin : gen_bad_word
    $error("unisono_smi_push: WordBytes must be 8 to PacketBytes");
  end

  typedef logic [FillBits-1:0] fill_t;

  open_t                  channel_q;
  logic                   active_q, tree_q;
  // Elements not yet taken; bytes that are held.
  logic [31:0]            left_q;
  logic [HeldBytes*8-1:0] held_q;
  fill_t                  fill_q;
  logic                   flush_q;
  logic [IdleBits-1:0]    idle_q;
  // Whole: bytes of the packet that have left in one before it was full.
  fill_t                  shown_q;

  opening_t mine;
  assign mine = opening_of(channel_q);

  // A full packet's bytes: whole elements.
  // Only elements of 8 bytes may leave some over; one choice of two costs less than any shift.
  localparam int unsigned Rounded = PayloadBytes / 8 * 8;
  fill_t full;
  logic  eights_q;
  always_ff @(posedge clk_i) begin
    if (open_ready_o) begin
      eights_q <= open_i.size == 2'd3;
    end
  end
  assign full = eights_q ? fill_t'(Rounded) : fill_t'(PayloadBytes);

  // ---- What leaves.
  logic                   out_valid_q, out_free, emit, ends, permitted;
  logic [Width-1:0]       out_data_q;
  fill_t                  part, rest;
  logic [HeldBytes*8-1:0] rest_held;
  header_t                header;

  // ---- What this end has to say, before anything else: it asks, or tells of a difference.
  localparam int unsigned AskBits = $clog2(AskAfter + 1);
  logic                speak_q, speaks, warns_q, closes;
  logic [3:0]          spoken_q;
  logic [AskBits-1:0]  ask_q;

  // ---- What the receiver has told.
  logic [MaxRanks-1:0]  first_q, asked_q;
  logic                 begun_q;
  logic [PlaceBits-1:0] places_q;
  logic [32:0]          window_q;

  assign out_free  = out_ready_i || !out_valid_q;
  assign part      = fill_q > full ? full : fill_q;
  assign ends      = left_q == '0 && fill_q <= full;
  assign permitted = !channel_q.credits || (begun_q && places_q != '0);

  logic stalled, in_parts, shows, news;
  assign in_parts = !(channel_q.strict && !channel_q.credits);
  assign emit = active_q && !speak_q && out_free && permitted
                && (fill_q >= full || ends
                    || (news && (flush_q || stalled || 32'(idle_q) == IdleFlush)));
  assign news  = in_parts ? fill_q != '0 : fill_q != shown_q;
  assign shows = !in_parts && fill_q < full && !ends;

  always_comb begin
    rest      = fill_q;
    rest_held = held_q;
    if (emit && !shows) begin
      rest      = fill_q - part;
      // What is behind a whole packet; a packet that is not full leaves nothing.
      rest_held = fill_q <= full ? '0 : eights_q ? held_q >> (8 * Rounded) : held_q >> (8 * PayloadBytes);
    end
  end

  // ---- What comes. A word is taken while less than a packet is held, so it fits.
  logic        word_fits, take;
  logic [31:0] offered, taken;
  logic [WordBytes*8-1:0] word;

  assign offered    = 32'(in_count_i);
  // Only the low bits of what is left are compared; a word has fewer elements than they count.
  assign taken      = left_q[31:LaneBits] != '0 || in_count_i <= left_q[LaneBits-1:0]
                      ? offered : 32'(left_q[LaneBits-1:0]);
  // Elements beyond the window wait. Nothing is under way before the receiver has begun.
  assign word_fits  = !(channel_q.credits && channel_q.strict)
                      || (begun_q && window_q >= 33'(taken));
  // What the receiver must pop before anything else can come is not held back.
  assign stalled    = channel_q.credits && channel_q.strict
                      && (window_q == '0 || (in_valid_i && !word_fits));
  // What was flushed leaves before anything is put behind it.
  assign in_ready_o = active_q && left_q != '0 && rest < full && word_fits
                      && (!flush_q || rest == '0);
  assign take       = in_valid_i && in_ready_o;

  // Bytes that do not count are zero, so that words can be put behind one another by OR.
  always_comb begin
    for (int unsigned b = 0; b < WordBytes; b++) begin
      word[b*8+:8] = (32'(b) >> channel_q.size) < taken ? in_data_i[b*8+:8] : 8'd0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      fill_q   <= '0;
      shown_q  <= '0;
      flush_q  <= 1'b0;
      idle_q   <= '0;
      left_q   <= '0;
    end else if (!active_q) begin
      active_q <= open_valid_i && open_ready_o;
      left_q   <= open_i.count;
      fill_q   <= '0;
      shown_q  <= '0;
      flush_q  <= 1'b0;
      idle_q   <= '0;
    end else begin
      if ((emit && ends) || closes) begin
        active_q <= 1'b0;
      end
      left_q <= take ? left_q - taken : left_q;
      fill_q <= take ? rest + fill_t'(taken << channel_q.size) : rest;
      if (emit) begin
        shown_q <= shows ? fill_q : '0;
      end
      if (take && in_flush_i) begin
        flush_q <= rest != '0 || taken != '0;
      end else if ((emit && (rest == '0 || shows)) || (!in_parts && fill_q == shown_q)) begin
        flush_q <= 1'b0;
      end
      if (take || emit || fill_q == '0) begin
        idle_q <= '0;
      end else if (32'(idle_q) != IdleFlush) begin
        idle_q <= idle_q + IdleBits'(1);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (open_ready_o) begin
      channel_q <= open_i;
      tree_q    <= tree_i;
    end
    if (!active_q) begin
      held_q    <= '0;
    end else begin
      held_q    <= take ? rest_held | (HeldBytes * 8)'(word) << {rest, 3'b000} : rest_held;
    end
  end
  assign open_ready_o = !active_q && !speak_q;

  logic unused_channel;
  assign unused_channel = ^channel_q;

  // ---- The packet.
  assign speaks = speak_q && out_free;
  assign header = '{
    count: speak_q ? '0 : CountBits'(part) >> channel_q.size,
    op:    speak_q ? OpSynch : ends ? OpLast : OpSend,
    port:  channel_q.port,
    dst:   channel_q.peer,
    src:   rank_i
  };

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q <= 1'b0;
    end else if (out_free) begin
      out_valid_q <= emit || speaks;
    end
  end

  control_t said;
  assign said = '{
    opening:  mine,
    message:  spoken_q,
    kind:     warns_q ? ControlDiffer : ControlAsks,
    default:  '0
  };
  logic [WideHeaderBits-1:0] packed_header;
  assign packed_header = header_bits(PacketBytes, header);
  logic unused_header;
  assign unused_header = ^packed_header;
  always_ff @(posedge clk_i) begin
    if (out_free) begin
      out_data_q <= {packed_header[WideHeaderBits-1-:(PacketBytes-PayloadBytes)*8],
                     speak_q ? (PayloadBytes * 8)'(said) : held_q[PayloadBytes*8-1:0]};
    end
  end
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_data_q;

  // ---- Credits.
  header_t     told_by;
  control_t    told;
  logic        tells, tells_first, is_mine;
  logic        known, has_q, ready_q, agree_q, count_q;

  localparam int unsigned ControlBits = $bits(control_t);
  assign told            = control_t'(control_data_i[ControlBits-1:0]);
  assign told_by         = header_of(PacketBytes, control_data_i[Width-1-:WideHeaderBits]);
  assign tells_first     = control_valid_i && told.kind == ControlPlaces && told.first;
  assign is_mine         = active_q && told_by.src == channel_q.peer;
  assign tells           = control_valid_i && told.kind == ControlPlaces && !told.first && is_mine
                           && begun_q;
  assign control_ready_o = 1'b1;

  // What the receiver was opened with, by rank. Seen, then compared, then used: a cycle each.
  opening_t            theirs_q;
  logic [PeerBits-1:0] peer;
  logic [3:0]          theirs_message_q, message;
  logic                match_q;
  (* ram_style = "distributed" *) logic [$bits(opening_t)+3:0] openings [MaxRanks];

  assign peer  = PeerBits'(channel_q.peer);
  assign known = active_q && ready_q && !begun_q;

  always_ff @(posedge clk_i) begin
    if (tells_first) begin
      openings[PeerBits'(told_by.src)] <= {told.message, told.opening};
    end
  end
  always_ff @(posedge clk_i) begin
    has_q    <= rst_ni && active_q && !begun_q && first_q[peer];
    ready_q  <= has_q && active_q && !begun_q;
    {theirs_message_q, theirs_q} <= openings[peer];
    match_q  <= theirs_message_q == message && !tree_q;
    count_q  <= theirs_q.count == mine.count;
    // An end without credits only wants one of its kind.
    agree_q  <= channel_q.credits
                ? theirs_q.credits && theirs_q.strict == mine.strict && theirs_q.size == mine.size
                  && theirs_q.window == mine.window
                : !theirs_q.credits;
  end

  // What was asked for before a channel was opened: with window 0, one element.
  logic asks_early;
  assign asks_early = control_valid_i && told.kind == ControlPlaces && !told.first
                      && told.elements != '0 && 32'(told_by.src) < MaxRanks
                      && first_q[PeerBits'(told_by.src)];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      asked_q <= '0;
    end else begin
      if (asks_early) begin
        asked_q[PeerBits'(told_by.src)] <= 1'b1;
      end
      if (known) begin
        asked_q[peer] <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q <= '0;
    end else begin
      if (known) begin
        first_q[peer] <= 1'b0;
      end
      if (tells_first && 32'(told_by.src) < MaxRanks) begin
        first_q[PeerBits'(told_by.src)] <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!active_q) begin
      begun_q  <= 1'b0;
      places_q <= '0;
      window_q <= '0;
    end else begin
      if (known) begin
        begun_q  <= 1'b1;
        places_q <= PlaceBits'(Window);
        window_q <= 33'(channel_q.window)
                    + 33'(asked_q[peer] || (asks_early && told_by.src == channel_q.peer));
      end else begin
        places_q <= places_q + (tells ? PlaceBits'(told.packets) : '0) - PlaceBits'(emit);
        window_q <= window_q + (tells ? 33'(told.elements) : '0) - (take ? 33'(taken) : '0);
      end
    end
  end

  // Messages that each rank has been sent, modulo 16; the number of this one is counted when it ends.
  logic [MaxRanks-1:0] counted_q;
  (* ram_style = "distributed" *) logic [3:0] messages [MaxRanks];
  logic over;
  assign message = counted_q[peer] ? messages[peer] : '0;
  assign over    = active_q && !tree_q && ((emit && ends) || closes);
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
  end

  // ---- Ends that differ.
  logic asks, unlike;
  assign unlike = known && match_q && !agree_q;
  assign closes = unlike && channel_q.credits;
  assign asks   = active_q && channel_q.credits && !begun_q && !known
                  && 32'(ask_q) == AskAfter - 1;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      speak_q <= 1'b0;
      warns_q <= 1'b0;
    end else if (unlike) begin
      speak_q <= 1'b1;
      warns_q <= 1'b1;
    end else if (asks) begin
      speak_q <= 1'b1;
      warns_q <= 1'b0;
    end else if (speaks) begin
      speak_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (active_q && !speak_q) begin
      spoken_q <= message;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!active_q) begin
      ask_q <= '0;
    end else if (channel_q.credits && !begun_q && 32'(ask_q) != AskAfter) begin
      ask_q <= ask_q + AskBits'(1);
    end
  end

  logic    differ_q;
  differ_t found_q;
  always_ff @(posedge clk_i) begin
    differ_q <= rst_ni && known && match_q && (!agree_q || (channel_q.credits && !count_q));
    found_q  <= '{peer: channel_q.peer, mine: mine, theirs: theirs_q};
  end
  assign differ_valid_o = differ_q;
  assign differ_o       = found_q;

  logic unused_told;
  assign unused_told = ^{told, told_by, control_data_i};

`ifndef SYNTHESIS
  unisono_handshake_check #(
    .Width(WordBytes * 8 + LaneBits + 1)
  ) u_check_in (
    .clk_i,
    .rst_ni,
    .valid_i(in_valid_i),
    .ready_i(in_ready_o),
    .data_i ({in_data_i, in_count_i, in_flush_i})
  );
  unisono_handshake_check #(
    .Width(Width)
  ) u_check_out (
    .clk_i,
    .rst_ni,
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i (out_data_o)
  );
  always_ff @(posedge clk_i) begin
    if (rst_ni && take) begin
      assert ((32'(in_count_i) << channel_q.size) <= WordBytes)
        else $error("%m: more elements than a word holds");
    end
  end
`endif

endmodule
