// Takes a move on its way into its window: finds out what it waits for, as a level for each entry of the window.
//
// A move goes by in beats, one for each peer. In each, one peer to receive from and one to send to are looked up: the
// latest earlier move of the pair. What a move names itself is turned to numbers of its group of rows. A move that
// names moves before its program's first is malformed.
//
// Latency: a move of k peers is armed 3 + k cycles after it came (k = 1 if it has none); an error is told 2 cycles
// after it came. Throughput: a beat per cycle; no move is taken while one has beats left (`more_o`). Restrictions: a
// clear ends what is on its way of its call, a move of the same cycle included.

module unisono_scoreboard_push
  import unisono_dmp_pkg::*;
#(
  parameter int unsigned Calls = unisono_cclo_pkg::Calls,
  parameter int unsigned Window = unisono_spec_pkg::Window,
  parameter int unsigned Ranks = unisono_cclo_pkg::Ranks,
  parameter int unsigned Rows = 8,
  localparam int unsigned SlotWidth = $clog2(Calls),
  localparam int unsigned EntryWidth = $clog2(Window),
  localparam int unsigned IdWidth = SlotWidth + EntryWidth
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,
  input  logic [Calls-1:0]                  clear_i,

  // A move is taken. `push_lapped_i`: Window moves of its call have come before it, or more.
  input  logic                              push_i,
  input  logic [SlotWidth-1:0]              push_slot_i,
  input  logic [EntryWidth-1:0]             push_entry_i,
  input  logic                              push_lapped_i,
  input  logic [Window-1:0]                 push_dependencies_i,
  input  logic [Window-1:0]                 push_streams_i,
  input  logic [EntryWidth:0]               push_distance_i,
  input  logic [Ranks-1:0]                  push_receives_i,
  input  logic [Ranks-1:0]                  push_sends_i,
  input  logic                              push_trivial_i,
  output logic                              more_o,

  output logic                              error_valid_o,
  output logic [IdWidth-1:0]                error_id_o,

  // It is known what it waits for. `arm_streams_o`: for an issue, too; `arm_free_o`: for nothing.
  output logic                              arm_o,
  output logic [SlotWidth-1:0]              arm_slot_o,
  output logic [EntryWidth-1:0]             arm_entry_o,
  output logic                              arm_trivial_o,
  output logic                              arm_malformed_o,
  output logic                              arm_streams_o,
  output logic                              arm_free_o,
  output level_e [Window-1:0]               arm_levels_o
);

  localparam int unsigned RowBits = $clog2(Rows);
  localparam int unsigned RankWidth = $clog2(Ranks);

  typedef logic [SlotWidth-1:0] slot_t;
  typedef logic [EntryWidth-1:0] entry_t;

  logic beat_valid_q, beat_first_q, beat_trivial_q, beat_lapped_q, beat_more;
  slot_t beat_slot_q;
  entry_t beat_entry_q;
  logic [Window-1:0] beat_dependencies_q, beat_streams_q;
  logic [EntryWidth:0] beat_distance_q;
  // The peers of this beat, and those of later ones.
  logic [Ranks-1:0] receive_now_q, receive_rest_q, receive_from, receive_one;
  logic [Ranks-1:0] send_now_q, send_rest_q, send_from, send_one;
  logic [RankWidth-1:0] receive_peer, send_peer;
  logic [1:0] unused_any;
  logic [1:0][RankWidth-1:0] unused_index;

  assign beat_more = |receive_rest_q || |send_rest_q;
  assign more_o = beat_valid_q && beat_more;
  assign receive_from = push_i ? push_receives_i : receive_rest_q;
  assign send_from = push_i ? push_sends_i : send_rest_q;

  unisono_lowest_one #(.Width(Ranks)) u_receive_one (
    .bits_i(receive_from), .any_o(unused_any[0]), .index_o(unused_index[0]), .one_o(receive_one)
  );
  unisono_lowest_one #(.Width(Ranks)) u_send_one (
    .bits_i(send_from), .any_o(unused_any[1]), .index_o(unused_index[1]), .one_o(send_one)
  );
  always_comb begin
    receive_peer = '0;
    send_peer = '0;
    for (int r = 0; r < int'(Ranks); r++) begin
      if (receive_now_q[r]) receive_peer |= RankWidth'(r);
      if (send_now_q[r]) send_peer |= RankWidth'(r);
    end
  end

  always_ff @(posedge clk_i) begin
    if (push_i) begin
      beat_first_q <= 1'b1;
      beat_slot_q <= push_slot_i;
      beat_entry_q <= push_entry_i;
      beat_lapped_q <= push_lapped_i;
      beat_dependencies_q <= push_dependencies_i;
      beat_streams_q <= push_streams_i;
      beat_distance_q <= push_distance_i;
      beat_trivial_q <= push_trivial_i;
    end else begin
      beat_first_q <= 1'b0;
    end
    receive_now_q <= receive_one;
    receive_rest_q <= receive_from & ~receive_one;
    send_now_q <= send_one;
    send_rest_q <= send_from & ~send_one;
    // A clear ends what is on its way, a push of the same cycle included: it was the old program's.
    if (!rst_ni) begin
      beat_valid_q <= 1'b0;
    end else if (push_i) begin
      beat_valid_q <= !clear_i[push_slot_i];
    end else begin
      beat_valid_q <= beat_valid_q && beat_more && !clear_i[beat_slot_q];
    end
  end

  // Move number n reaches n moves back, until Window moves have come.
  logic malformed;
  always_comb begin
    malformed = !beat_lapped_q && (beat_distance_q > {1'b0, beat_entry_q} ||
                                   |(beat_dependencies_q & ({Window{1'b1}} << beat_entry_q)));
  end

  always_ff @(posedge clk_i) begin
    error_valid_o <= rst_ni && beat_valid_q && beat_first_q && malformed && !clear_i[beat_slot_q];
    error_id_o <= {beat_slot_q, beat_entry_q};
  end

  // Entries of a row are numbered from the first of its own group: entry base + c is number c. Bit
  // i of dependencies of row r is then number r - 1 - i.
  logic [Window-1:0] beat_relative, beat_relative_streams;
  always_comb begin
    beat_relative = '0;
    beat_relative_streams = '0;
    for (int r = 0; r < int'(Rows); r++) begin
      if (32'(beat_entry_q) % Rows == 32'(r)) begin
        for (int i = 0; i < int'(Window) - 1; i++) begin
          beat_relative[(r - 1 - i + int'(Window)) % int'(Window)] = beat_dependencies_q[i];
          beat_relative_streams[(r - 1 - i + int'(Window)) % int'(Window)] = beat_streams_q[i];
        end
      end
    end
  end

  logic receive_found, send_found;
  entry_t receive_entry, send_entry;

  unisono_pair_order #(.Calls(Calls), .Window(Window), .Ranks(Ranks)) u_receive_order (
    .clk_i,
    .first_i(beat_valid_q && beat_first_q), .slot_i(beat_slot_q), .entry_i(beat_entry_q),
    .peers_i(receive_now_q | receive_rest_q), .peer_valid_i(beat_valid_q && |receive_now_q),
    .peer_i(receive_peer),
    .found_o(receive_found), .found_entry_o(receive_entry)
  );
  unisono_pair_order #(.Calls(Calls), .Window(Window), .Ranks(Ranks)) u_send_order (
    .clk_i,
    .first_i(beat_valid_q && beat_first_q), .slot_i(beat_slot_q), .entry_i(beat_entry_q),
    .peers_i(send_now_q | send_rest_q), .peer_valid_i(beat_valid_q && |send_now_q),
    .peer_i(send_peer),
    .found_o(send_found), .found_entry_o(send_entry)
  );

  // The move beside its look-ups; the last step writes the row.
  typedef struct packed {
    logic first;
    logic last;
    logic trivial;
    logic malformed;
    slot_t slot;
    entry_t entry;
    logic [Window-1:0] relative;
    logic [Window-1:0] streams;
  } look_t;

  localparam int unsigned Steps = 3;
  look_t [Steps-1:0] look_q;
  logic [Steps-1:0] look_valid_q;
  logic beat_malformed_q;

  always_ff @(posedge clk_i) begin
    if (beat_first_q) beat_malformed_q <= malformed;
    look_q <= {look_q[Steps-2:0], look_t'{
      first: beat_first_q,
      last: !beat_more,
      trivial: beat_trivial_q,
      malformed: beat_first_q ? malformed : beat_malformed_q,
      slot: beat_slot_q,
      entry: beat_entry_q,
      relative: beat_relative,
      streams: beat_relative_streams
    }};
    look_valid_q[0] <= rst_ni && beat_valid_q && !clear_i[beat_slot_q];
    for (int i = 1; i < int'(Steps); i++) begin
      look_valid_q[i] <= rst_ni && look_valid_q[i-1] && !clear_i[look_q[i-1].slot];
    end
  end

  look_t found;
  logic [Window-1:0] consumed_of, sent_of, earlier_consumed_q, earlier_sent_q;
  assign found = look_q[Steps-1];
  entry_t found_base;                           // the first entry of its group
  assign found_base = entry_t'((32'(found.entry) >> RowBits) << RowBits);

  always_comb begin
    consumed_of = found.first ? '0 : earlier_consumed_q;
    sent_of = found.first ? '0 : earlier_sent_q;
    if (receive_found) consumed_of[receive_entry-found_base] = 1'b1;
    if (send_found) sent_of[send_entry-found_base] = 1'b1;
  end
  always_ff @(posedge clk_i) begin
    earlier_consumed_q <= consumed_of;
    earlier_sent_q <= sent_of;
  end

  assign arm_o = look_valid_q[Steps-1] && found.last && !clear_i[found.slot];
  assign arm_slot_o = found.slot;
  assign arm_entry_o = found.entry;
  assign arm_trivial_o = found.trivial;
  assign arm_malformed_o = found.malformed;
  assign arm_streams_o = found.streams != '0;
  assign arm_free_o = (found.relative | found.streams | consumed_of | sent_of) == '0;

  for (genvar c = 0; c < int'(Window); c++) begin : gen_arm_level
    always_comb begin
      if (found.relative[c]) arm_levels_o[c] = LevelComplete;
      else if (sent_of[c]) arm_levels_o[c] = LevelSent;
      else if (consumed_of[c]) arm_levels_o[c] = LevelConsumed;
      else if (found.streams[c]) arm_levels_o[c] = LevelIssued;
      else arm_levels_o[c] = LevelNone;
    end
  end

  wire unused_picks = ^{unused_any, unused_index};

endmodule
