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
// the receiver asks for one. Whole, strict without credits: every packet but the last is full;
// in_flush_i and pauses do not count. This is what unisono_smi_reduce needs.
//
// Control packets (OpSynch), from the receiver: bytes 0-3 elements that were popped since the last
// one, 4-7 packets likewise, byte 8 is 1 in the first of a message. Each is taken at once. The first
// is remembered for each rank until a channel to it is opened, and so is an element that was asked
// for behind it; others count only if they come from the peer of the open channel behind its first.
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
  input  logic [Width-1:0]       control_data_i
);

  import unisono_smi_pkg::*;

  localparam int unsigned PayloadBytes = PacketBytes - header_bytes(PacketBytes);
  localparam int unsigned HeldBytes    = PayloadBytes + WordBytes;
  localparam int unsigned FillBits     = $clog2(HeldBytes + 1);
  localparam int unsigned IdleBits     = $clog2(IdleFlush + 1);
  localparam int unsigned PlaceBits    = 32;
  localparam int unsigned PeerBits     = MaxRanks > 1 ? $clog2(MaxRanks) : 1;

  if (WordBytes < 8 || WordBytes > PacketBytes) begin : gen_bad_word
    $error("unisono_smi_push: WordBytes must be 8 to PacketBytes");
  end

  typedef logic [FillBits-1:0] fill_t;

  open_t                  channel_q;
  logic                   active_q;
  // Elements not yet taken; bytes that are held.
  logic [31:0]            left_q;
  logic [HeldBytes*8-1:0] held_q;
  fill_t                  fill_q;
  logic                   flush_q;
  logic [IdleBits-1:0]    idle_q;

  // A full packet's bytes: whole elements.
  fill_t full;
  assign full = fill_t'((PayloadBytes >> channel_q.size) << channel_q.size);

  // ---- What leaves.
  logic                   out_valid_q, out_free, emit, ends, permitted;
  logic [Width-1:0]       out_data_q;
  fill_t                  part, rest;
  logic [HeldBytes*8-1:0] rest_held;
  header_t                header;

  // ---- What the receiver has told.
  logic [MaxRanks-1:0]  first_q, asked_q;
  logic                 begun_q;
  logic [PlaceBits-1:0] places_q;
  logic [32:0]          window_q;

  assign out_free  = out_ready_i || !out_valid_q;
  assign part      = fill_q > full ? full : fill_q;
  assign ends      = left_q == '0 && fill_q <= full;
  assign permitted = !channel_q.credits || (begun_q && places_q != '0);

  logic stalled, in_parts;
  assign in_parts = !(channel_q.strict && !channel_q.credits);
  assign emit = active_q && out_free && permitted
                && (fill_q >= full || ends
                    || (fill_q != '0 && in_parts
                        && (flush_q || stalled || 32'(idle_q) == IdleFlush)));

  always_comb begin
    rest      = fill_q;
    rest_held = held_q;
    if (emit) begin
      rest      = fill_q - part;
      // What is behind a whole packet; a packet that is not full leaves nothing.
      rest_held = fill_q > full ? held_q >> {full, 3'b000} : '0;
    end
  end

  // ---- What comes. A word is taken while less than a packet is held, so it fits.
  logic        word_fits, take;
  logic [31:0] offered, taken;
  logic [WordBytes*8-1:0] word;

  assign offered    = 32'(in_count_i);
  assign taken      = offered < left_q ? offered : left_q;
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
      flush_q  <= 1'b0;
      idle_q   <= '0;
      left_q   <= '0;
    end else if (!active_q) begin
      active_q <= open_valid_i;
      left_q   <= open_i.count;
      fill_q   <= '0;
      flush_q  <= 1'b0;
      idle_q   <= '0;
    end else begin
      if (emit && ends) begin
        active_q <= 1'b0;
      end
      left_q <= take ? left_q - taken : left_q;
      fill_q <= take ? rest + fill_t'(taken << channel_q.size) : rest;
      if (take && in_flush_i && in_parts) begin
        flush_q <= rest != '0 || taken != '0;
      end else if (emit && rest == '0) begin
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
    if (!active_q) begin
      channel_q <= open_i;
      held_q    <= '0;
    end else begin
      held_q    <= take ? rest_held | (HeldBytes * 8)'(word) << {rest, 3'b000} : rest_held;
    end
  end
  assign open_ready_o = !active_q;

  logic unused_channel;
  assign unused_channel = ^channel_q;

  // ---- The packet.
  assign header = '{
    count: CountBits'(part) >> channel_q.size,
    op:    ends ? OpLast : OpSend,
    port:  channel_q.port,
    dst:   channel_q.peer,
    src:   rank_i
  };

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q <= 1'b0;
    end else if (out_free) begin
      out_valid_q <= emit;
    end
  end

  logic [WideHeaderBits-1:0] packed_header;
  assign packed_header = header_bits(PacketBytes, header);
  logic unused_header;
  assign unused_header = ^packed_header;
  always_ff @(posedge clk_i) begin
    if (out_free) begin
      out_data_q <= {packed_header[WideHeaderBits-1-:(PacketBytes-PayloadBytes)*8],
                     held_q[PayloadBytes*8-1:0]};
    end
  end
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_data_q;

  // ---- Credits.
  header_t     told;
  logic        tells, tells_first, mine;
  logic [31:0] told_elements, told_packets;
  logic        known;

  assign told            = header_of(PacketBytes, control_data_i[Width-1-:WideHeaderBits]);
  assign told_elements   = control_data_i[31:0];
  assign told_packets    = control_data_i[63:32];
  assign tells_first     = control_valid_i && control_data_i[64];
  assign mine            = active_q && told.src == channel_q.peer;
  assign tells           = control_valid_i && !control_data_i[64] && mine && begun_q;
  assign control_ready_o = 1'b1;

  logic [PeerBits-1:0] peer;
  assign peer  = PeerBits'(channel_q.peer);
  assign known = active_q && channel_q.credits && !begun_q && first_q[peer];

  // What was asked for before a channel was opened: with window 0, one element.
  logic asks_early;
  assign asks_early = control_valid_i && !control_data_i[64] && told_elements != '0
                      && 32'(told.src) < MaxRanks && first_q[PeerBits'(told.src)];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      asked_q <= '0;
    end else begin
      if (asks_early) begin
        asked_q[PeerBits'(told.src)] <= 1'b1;
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
      if (tells_first && 32'(told.src) < MaxRanks) begin
        first_q[PeerBits'(told.src)] <= 1'b1;
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
                    + 33'(asked_q[peer] || (asks_early && told.src == channel_q.peer));
      end else begin
        places_q <= places_q + (tells ? told_packets : '0) - PlaceBits'(emit);
        window_q <= window_q + (tells ? 33'(told_elements) : '0) - (take ? 33'(taken) : '0);
      end
    end
  end

  logic unused_told;
  assign unused_told = ^{told, control_data_i[Width-1:65]};

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
