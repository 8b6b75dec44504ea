// Windows of moves, one per call: holds moves back until what they depend on is complete, and keeps
// the order of pairs.
//
// A move is taken in (push), offered when it may start (issue), and leaves its window, in order,
// when it is complete. It may start when all moves that `dependencies` names are complete, all that
// `streams` names have been issued (whoever carries it out sees to its segments), every
// earlier move that receives from one of its peers is `consumed`, and every earlier one that sends
// to one of its peers is `sent`. `complete` implies `sent`, and `sent` implies `consumed`.
//
// What a move waits for is a row: a level per entry of the window (nothing, issued, consumed, sent,
// complete). Rows are examined `Rows` at a time; such a group of one call is a unit. An event makes
// the units of its call dirty, and dirty units are examined by turns.
//
// Latency: event to issue 3 cycles if nothing else is under examination; 2 more if the unit itself
// is, one more per dirty unit, and one per move that goes before; issue to the issue of what streams
// from it one more. Push to issue 7. Throughput: one
// push, one issue, one event of each kind, one retirement per cycle. A push that names k > 1 peers
// in a list takes k cycles.
// Restrictions: sizes are powers of two. Events name moves that have been issued; each at most
// once. Nothing is pushed to a call between its close and its end. What belongs to a program that
// has been cleared carries the generation in which it was issued, and is ignored.

module unisono_scoreboard #(
  parameter int unsigned Calls = unisono_cclo_pkg::Calls,
  parameter int unsigned Window = unisono_spec_pkg::Window,
  parameter int unsigned Ranks = unisono_cclo_pkg::Ranks,
  parameter int unsigned Rows = 8,
  parameter int unsigned GenerationWidth = 2,
  localparam int unsigned SlotWidth = $clog2(Calls),
  localparam int unsigned EntryWidth = $clog2(Window),
  localparam int unsigned IdWidth = SlotWidth + EntryWidth
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  // A move enters; its entry is its number modulo Window.
  input  logic                              push_valid_i,
  output logic                              push_ready_o,
  input  logic [SlotWidth-1:0]              push_slot_i,
  input  logic [Window-1:0]                 push_dependencies_i,
  input  logic [Window-1:0]                 push_streams_i,       // producers of its segments, likewise
  input  logic [EntryWidth:0]               push_distance_i,      // the greater segment dependency
  input  logic [Ranks-1:0]                  push_receives_i,
  input  logic [Ranks-1:0]                  push_sends_i,
  input  logic                              push_trivial_i,       // completes instead of issuing
  output logic [EntryWidth-1:0]             push_entry_o,

  // A move that names moves before its program's first. It stays, and never issues: the call must
  // be cleared.
  output logic                              error_valid_o,
  output logic [IdWidth-1:0]                error_id_o,

  // A move may start. Identities are {slot, entry}, as move_id_t.
  output logic                              issue_valid_o,
  input  logic                              issue_ready_i,
  output logic [IdWidth-1:0]                issue_id_o,
  output logic [GenerationWidth-1:0]        issue_generation_o,

  // Its last segment has been taken from its peers; has been handed to Tx; all is done (rule 14 of
  // the model).
  input  logic                              consumed_valid_i,
  input  logic [IdWidth-1:0]                consumed_id_i,
  input  logic [GenerationWidth-1:0]        consumed_generation_i,
  input  logic                              sent_valid_i,
  input  logic [IdWidth-1:0]                sent_id_i,
  input  logic [GenerationWidth-1:0]        sent_generation_i,
  input  logic                              complete_valid_i,
  input  logic [IdWidth-1:0]                complete_id_i,
  input  logic [GenerationWidth-1:0]        complete_generation_i,

  // A move has left its window.
  output logic                              retired_valid_o,
  output logic [IdWidth-1:0]                retired_id_o,

  // No more moves come; all that came are complete, and the slot is free again.
  input  logic                              close_valid_i,
  input  logic [SlotWidth-1:0]              close_slot_i,
  output logic                              finished_valid_o,
  input  logic                              finished_ready_i,
  output logic [SlotWidth-1:0]              finished_slot_o,

  // Forget the call. From the next cycle on nothing of it is issued, and what is pushed is a new
  // program's.
  input  logic                              clear_valid_i,
  input  logic [SlotWidth-1:0]              clear_slot_i,

  output logic [Calls-1:0][EntryWidth:0]    room_o,
  output logic [Calls-1:0]                  empty_o,
  output logic [Calls-1:0][GenerationWidth-1:0] generation_o
);

  localparam int unsigned Groups = Window / Rows;
  localparam int unsigned RowBits = $clog2(Rows);
  localparam int unsigned Units = Calls * Groups;
  localparam int unsigned UnitWidth = $clog2(Units);
  localparam int unsigned RankWidth = $clog2(Ranks);

  if ((Calls & (Calls - 1)) != 0 || Calls < 2) begin : gen_check_calls
    $error("Calls must be a power of two, at least 2");
  end
  if ((Window & (Window - 1)) != 0 || (Rows & (Rows - 1)) != 0 || Rows < 2 ||
      Rows > Window) begin : gen_check_window
    $error("Window and Rows must be powers of two, 2 <= Rows <= Window");
  end
  if (Units > 64) begin : gen_check_units
    $error("at most 64 units can be examined by turns");
  end
  if ((Ranks & (Ranks - 1)) != 0 || Ranks < 2 || Ranks > 64) begin : gen_check_ranks
    $error("Ranks must be a power of two, 2 to 64");
  end

  typedef logic [SlotWidth-1:0] slot_t;
  typedef logic [EntryWidth-1:0] entry_t;
  typedef logic [EntryWidth:0] count_t;         // move numbers modulo 2 * Window
  typedef logic [UnitWidth-1:0] unit_t;         // {group, slot}
  typedef enum logic [2:0] {
    LevelNone = 3'd0,
    LevelIssued = 3'd1,
    LevelConsumed = 3'd2,
    LevelSent = 3'd3,
    LevelComplete = 3'd4
  } level_e;
  localparam int unsigned LevelWidth = $bits(level_e);

  function automatic unit_t unit_of(slot_t slot, entry_t entry);
    return unit_t'(((32'(entry) >> RowBits) << SlotWidth) | 32'(slot));
  endfunction

  // The first entry of a unit's group.
  function automatic entry_t base_of(unit_t unit);
    return entry_t'((32'(unit) >> SlotWidth) << RowBits);
  endfunction

  // -----------------------------------------------------------------------------------------------
  // The windows: [head, armed) can be examined, [armed, tail) is on its way there.

  count_t [Calls-1:0] head_q, armed_q, tail_q;
  logic [Calls-1:0] lapped_q;                   // Window moves have come, or more
  logic [Calls-1:0] closed_q;
  logic [Calls-1:0][GenerationWidth-1:0] generation_q;

  logic [Calls-1:0] clear, finish, may_push;
  logic push, arm, retire;
  slot_t arm_slot, retire_slot;
  entry_t arm_entry;
  logic finished_valid_q;
  slot_t finished_slot_q;

  for (genvar s = 0; s < int'(Calls); s++) begin : gen_call
    wire own_push = push && push_slot_i == slot_t'(s);
    wire [EntryWidth:0] held = tail_q[s] - head_q[s];
    assign clear[s] = clear_valid_i && clear_slot_i == slot_t'(s);
    assign finish[s] = finished_valid_q && finished_ready_i && finished_slot_q == slot_t'(s);
    assign room_o[s] = count_t'(Window) - held;
    assign empty_o[s] = held == '0;
    assign may_push[s] = !held[EntryWidth] && !closed_q[s];

    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear[s] || finish[s]) begin
        head_q[s] <= '0;
        armed_q[s] <= '0;
        tail_q[s] <= '0;
        lapped_q[s] <= 1'b0;
      end else begin
        head_q[s] <= head_q[s] + count_t'(retire && retire_slot == slot_t'(s));
        armed_q[s] <= armed_q[s] + count_t'(arm && arm_slot == slot_t'(s));
        tail_q[s] <= tail_q[s] + count_t'(own_push);
        lapped_q[s] <= lapped_q[s] || (own_push && tail_q[s][EntryWidth-1:0] == '1);
      end
      if (!rst_ni || clear[s] || finish[s]) begin
        closed_q[s] <= 1'b0;
      end else if (close_valid_i && close_slot_i == slot_t'(s)) begin
        closed_q[s] <= 1'b1;
      end
      if (!rst_ni) begin
        generation_q[s] <= '0;
      end else if (clear[s]) begin
        generation_q[s] <= generation_q[s] + 1'b1;
      end
    end
  end
  assign generation_o = generation_q;

  // -----------------------------------------------------------------------------------------------
  // Push: one beat per peer. In each beat one peer to receive from and one to send to are looked
  // up.

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

  assign push_ready_o = may_push[push_slot_i] && !(beat_valid_q && beat_more);
  assign push_entry_o = tail_q[push_slot_i][EntryWidth-1:0];
  assign push = push_valid_i && push_ready_o;

  assign beat_more = |receive_rest_q || |send_rest_q;
  assign receive_from = push ? push_receives_i : receive_rest_q;
  assign send_from = push ? push_sends_i : send_rest_q;

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
    if (push) begin
      beat_first_q <= 1'b1;
      beat_slot_q <= push_slot_i;
      beat_entry_q <= push_entry_o;
      beat_lapped_q <= lapped_q[push_slot_i];
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
    end else if (push) begin
      beat_valid_q <= !clear[push_slot_i];
    end else begin
      beat_valid_q <= beat_valid_q && beat_more && !clear[beat_slot_q];
    end
  end

  // Move number n reaches n moves back, until Window moves have come.
  logic malformed;
  always_comb begin
    malformed = !beat_lapped_q && (beat_distance_q > {1'b0, beat_entry_q} ||
                                   |(beat_dependencies_q & ({Window{1'b1}} << beat_entry_q)));
  end

  always_ff @(posedge clk_i) begin
    error_valid_o <= rst_ni && beat_valid_q && beat_first_q && malformed && !clear[beat_slot_q];
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
    look_valid_q[0] <= rst_ni && beat_valid_q && !clear[beat_slot_q];
    for (int i = 1; i < int'(Steps); i++) begin
      look_valid_q[i] <= rst_ni && look_valid_q[i-1] && !clear[look_q[i-1].slot];
    end
  end

  look_t found;
  logic [Window-1:0] consumed_of, sent_of, earlier_consumed_q, earlier_sent_q;
  assign found = look_q[Steps-1];
  entry_t found_base;
  assign found_base = base_of(unit_of(found.slot, found.entry));

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

  assign arm_slot = found.slot;
  assign arm_entry = found.entry;
  assign arm = look_valid_q[Steps-1] && found.last && !clear[found.slot];
  unit_t arm_unit;
  assign arm_unit = unit_of(arm_slot, arm_entry);

  level_e [Window-1:0] arm_levels;
  for (genvar c = 0; c < int'(Window); c++) begin : gen_arm_level
    always_comb begin
      if (found.relative[c]) arm_levels[c] = LevelComplete;
      else if (sent_of[c]) arm_levels[c] = LevelSent;
      else if (consumed_of[c]) arm_levels[c] = LevelConsumed;
      else if (found.streams[c]) arm_levels[c] = LevelIssued;
      else arm_levels[c] = LevelNone;
    end
  end

  // -----------------------------------------------------------------------------------------------
  // Events. Moves that need not be issued complete here, in cycles in which no other does.

  logic consumed, sent, complete, trivial_complete, own_complete;
  logic [IdWidth-1:0] complete_id, drain_id;
  slot_t consumed_slot, sent_slot, complete_slot;
  entry_t consumed_entry, sent_entry, complete_entry;

  assign {consumed_slot, consumed_entry} = consumed_id_i;
  assign {sent_slot, sent_entry} = sent_id_i;
  assign {complete_slot, complete_entry} = complete_id;
  assign own_complete = trivial_complete && !complete_valid_i;
  assign complete_id = complete_valid_i ? complete_id_i : drain_id;
  assign consumed = consumed_valid_i && consumed_generation_i == generation_q[consumed_slot];
  assign sent = sent_valid_i && sent_generation_i == generation_q[sent_slot];
  assign complete = complete_valid_i ? complete_generation_i == generation_q[complete_slot]
                                     : own_complete;

  slot_t examined_slot;
  logic [Window-1:0] unissued, unconsumed, unsent, incomplete;
  logic head_incomplete, next_incomplete;
  entry_t retire_entry;
  logic [5:0] unused_probe;

  // A move that is found to wait for nothing at all, or before which none is left, is offered as it is armed, past the
  // examination. One such move can be on offer; what the drain has begun to offer goes first.
  logic direct_arm, direct_q, issue_direct, drain_held_q;
  logic [IdWidth-1:0] direct_id_q, direct_id, issue_id;
  slot_t issue_slot;
  assign direct_arm = arm && !found.trivial && !found.malformed && !direct_q &&
                      (head_q[found.slot] == armed_q[found.slot] ||
                       (found.relative | found.streams | consumed_of | sent_of) == '0);
  assign direct_id = direct_q ? direct_id_q : {found.slot, found.entry};
  assign issue_direct = (direct_q || direct_arm) && !drain_held_q;
  assign issue_id = issue_direct ? direct_id : drain_id;
  assign issue_slot = issue_id[IdWidth-1:EntryWidth];
  always_ff @(posedge clk_i) begin
    drain_held_q <= rst_ni && issue_valid_o && !issue_ready_i && !issue_direct;
    if (!rst_ni || clear[direct_id[IdWidth-1:EntryWidth]] || (issue_direct && issue_ready_i)) begin
      direct_q <= 1'b0;
    end else if (direct_arm) begin
      direct_q <= 1'b1;
    end
    direct_id_q <= direct_id;
  end

  // An issue is an event a cycle later: who takes it may know late that it does.
  logic issued_q;
  slot_t issued_slot_q;
  entry_t issued_entry_q;
  always_ff @(posedge clk_i) begin
    issued_q <= rst_ni && issue_valid_o && issue_ready_i;
    {issued_slot_q, issued_entry_q} <= issue_id;
  end
  unisono_pending_bits #(.Rows(Calls), .Columns(Window)) u_unissued (
    .clk_i,
    .raise_valid_i(arm), .raise_row_i(arm_slot), .raise_column_i(arm_entry),
    .lower_valid_i(issued_q), .lower_row_i(issued_slot_q), .lower_column_i(issued_entry_q),
    .row_i(examined_slot), .row_o(unissued),
    .probe_row_i('0), .probe_column_i('0), .probe_o(unused_probe[4]),
    .probe_next_o(unused_probe[5])
  );
  unisono_pending_bits #(.Rows(Calls), .Columns(Window)) u_unconsumed (
    .clk_i,
    .raise_valid_i(arm), .raise_row_i(arm_slot), .raise_column_i(arm_entry),
    .lower_valid_i(consumed), .lower_row_i(consumed_slot), .lower_column_i(consumed_entry),
    .row_i(examined_slot), .row_o(unconsumed),
    .probe_row_i('0), .probe_column_i('0), .probe_o(unused_probe[0]),
    .probe_next_o(unused_probe[1])
  );
  unisono_pending_bits #(.Rows(Calls), .Columns(Window)) u_unsent (
    .clk_i,
    .raise_valid_i(arm), .raise_row_i(arm_slot), .raise_column_i(arm_entry),
    .lower_valid_i(sent), .lower_row_i(sent_slot), .lower_column_i(sent_entry),
    .row_i(examined_slot), .row_o(unsent),
    .probe_row_i('0), .probe_column_i('0), .probe_o(unused_probe[2]),
    .probe_next_o(unused_probe[3])
  );
  unisono_pending_bits #(.Rows(Calls), .Columns(Window)) u_incomplete (
    .clk_i,
    .raise_valid_i(arm), .raise_row_i(arm_slot), .raise_column_i(arm_entry),
    .lower_valid_i(complete), .lower_row_i(complete_slot), .lower_column_i(complete_entry),
    .row_i(examined_slot), .row_o(incomplete),
    .probe_row_i(retire_slot), .probe_column_i(retire_entry), .probe_o(head_incomplete),
    .probe_next_o(next_incomplete)
  );

  // -----------------------------------------------------------------------------------------------
  // Which unit is examined next: one that has waiting rows (live) and to whose call something has
  // happened (dirty).

  logic [Units-1:0] live_q, live_set, dirty_q, dirty_set;
  logic [Units-1:0] streams_q;                  // some row has waited for an issue
  logic [Units-1:0] candidates, later, after, pick_any_one, pick_later_one;
  logic pick_any, pick_later;
  unit_t pick_unit, pick_any_unit, pick_later_unit;
  logic go, window_go;                          // the second step takes a unit; the first one does

  logic window_valid_q;                         // first step: windows and events of the unit's call
  unit_t window_unit_q;
  logic test_valid_q, test_left;                // second step: its rows
  unit_t test_unit_q;
  logic left_valid_q;                           // some of them still wait
  unit_t left_unit_q;
  logic drain_any_trivial;
  slot_t drain_slot;

  // The first step reads what has been written before its last cycle; what is set in that cycle
  // stays. A unit that is in a step must not be picked: which of its rows are ready is marked only
  // at the end of the second.
  for (genvar u = 0; u < int'(Units); u++) begin : gen_unit
    localparam int unsigned Slot = u % Calls;
    wire in_first_step = window_valid_q && window_unit_q == unit_t'(u);
    wire own_arm = arm && arm_unit == unit_t'(u);
    // Events that turn out to be of an old generation do no harm here.
    assign dirty_set[u] = own_arm || (consumed_valid_i && consumed_slot == slot_t'(Slot)) ||
                          (sent_valid_i && sent_slot == slot_t'(Slot)) ||
                          (complete_valid_i &&
                           complete_id_i[IdWidth-1:EntryWidth] == slot_t'(Slot)) ||
                          (drain_any_trivial && drain_slot == slot_t'(Slot)) ||
                          (issued_q && streams_q[u] && issued_slot_q == slot_t'(Slot));
    assign live_set[u] = own_arm || (left_valid_q && left_unit_q == unit_t'(u));
    assign candidates[u] = (live_q[u] || live_set[u]) && (dirty_q[u] || dirty_set[u]) &&
                           !in_first_step && !(test_valid_q && test_unit_q == unit_t'(u)) && !clear[Slot];
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear[Slot] || finish[Slot]) begin
        streams_q[u] <= 1'b0;
      end else if (own_arm && found.streams != '0) begin
        streams_q[u] <= 1'b1;
      end
      if (!rst_ni) begin
        live_q[u] <= 1'b0;
        dirty_q[u] <= 1'b0;
      end else begin
        live_q[u] <= (live_set[u] || (live_q[u] && !in_first_step)) && !clear[Slot];
        dirty_q[u] <= dirty_set[u] || (dirty_q[u] && !in_first_step);
      end
    end
  end
  // By turns: the one behind the last, if any.
  assign after = ({Units{1'b1}} << 1) << window_unit_q;
  assign later = candidates & after;

  unisono_lowest_one #(.Width(Units)) u_pick_any (
    .bits_i(candidates), .any_o(pick_any), .index_o(pick_any_unit), .one_o(pick_any_one)
  );
  unisono_lowest_one #(.Width(Units)) u_pick_later (
    .bits_i(later), .any_o(pick_later), .index_o(pick_later_unit), .one_o(pick_later_one)
  );
  assign pick_unit = pick_later ? pick_later_unit : pick_any_unit;
  wire unused_picks = ^{pick_any_one, pick_later_one, unused_any, unused_index};

  // -----------------------------------------------------------------------------------------------
  // First step: how far each entry is, in numbers of the unit.

  entry_t window_base;
  count_t window_head, window_armed;
  entry_t head_number, armed_number;
  logic [Window-1:0] from_head, rotated_unissued, rotated_unconsumed, rotated_unsent, rotated_incomplete;
  logic [Rows-1:0] in_window, before_armed, waiting;
  logic [Rows-1:0] waits_word, taken_word;
  level_e [Window-1:0] done_d, done_q;
  logic [Rows-1:0] waiting_q, taken_word_q, from_head_q;

  assign examined_slot = slot_t'(window_unit_q);
  assign window_base = base_of(window_unit_q);
  assign window_head = head_q[examined_slot];
  assign window_armed = armed_q[examined_slot];
  assign head_number = window_head[EntryWidth-1:0] - window_base;
  assign armed_number = window_armed[EntryWidth-1:0] - window_base;
  assign rotated_unissued = Window'({unissued, unissued} >> window_base);
  assign rotated_unconsumed = Window'({unconsumed, unconsumed} >> window_base);
  assign rotated_unsent = Window'({unsent, unsent} >> window_base);
  assign rotated_incomplete = Window'({incomplete, incomplete} >> window_base);

  assign from_head = {Window{1'b1}} << head_number;
  assign before_armed = ~Rows'({Window{1'b1}} << armed_number);

  for (genvar c = 0; c < int'(Window); c++) begin : gen_number
    // Of entries outside the group, those from the head on are before all its rows (or, if the head
    // is in the group, before those of its rows that are before the head). Others stand for moves
    // to come, or for none.
    always_comb begin
      if (!rotated_incomplete[c] || (c >= int'(Rows) && !from_head[c])) begin
        done_d[c] = LevelComplete;
      end else if (!rotated_unsent[c]) begin
        done_d[c] = LevelSent;
      end else if (!rotated_unconsumed[c]) begin
        done_d[c] = LevelConsumed;
      end else if (!rotated_unissued[c]) begin
        done_d[c] = LevelIssued;
      end else begin
        done_d[c] = LevelNone;
      end
    end
  end

  // The window is [head, armed), and goes round if armed does not lie above head; equal numbers:
  // full, or empty.
  wire window_empty = window_head == window_armed;
  wire window_round = armed_number <= head_number;
  for (genvar r = 0; r < int'(Rows); r++) begin : gen_row
    assign in_window[r] = !window_empty &&
                          (window_round ? from_head[r] || before_armed[r]
                                        : from_head[r] && before_armed[r]);
    assign waiting[r] = in_window[r] && (waits_word[r] ^ taken_word[r]);
  end

  always_ff @(posedge clk_i) begin
    if (window_go && pick_any) window_unit_q <= pick_unit;
    if (go) begin
      test_unit_q <= window_unit_q;
      done_q <= done_d;
      waiting_q <= waiting;
      taken_word_q <= taken_word;
      // Only the group in which the head stands has rows on both sides of it.
      from_head_q <= 32'(head_number) < Rows ? from_head[Rows-1:0] : '0;
    end
    if (!rst_ni) begin
      window_valid_q <= 1'b0;
      test_valid_q <= 1'b0;
    end else begin
      window_valid_q <= window_go ? pick_any : window_valid_q && !clear[examined_slot];
      test_valid_q <= go ? window_valid_q && !clear[examined_slot]
                         : test_valid_q && !clear[slot_t'(test_unit_q)];
    end
    left_unit_q <= test_unit_q;
    left_valid_q <= rst_ni && go && test_valid_q && test_left && !clear[slot_t'(test_unit_q)];
  end

  // -----------------------------------------------------------------------------------------------
  // Second step: the rows of the unit. Whether a row waits is the difference of two bits, as in
  // unisono_pending_bits: one is written when the row is, the other when it is found ready.

  logic [Rows-1:0] blocked, ready, row_trivial;
  logic drain_free;
  (* ram_style = "distributed" *) logic [Rows-1:0] waits_q [Units];
  (* ram_style = "distributed" *) logic [Rows-1:0] taken_q [Units];
  logic [Rows-1:0] waits_d;

  // A malformed move does not wait: it is never ready. Nor does one that is offered as it is armed.
  always_comb begin
    waits_d = waits_q[arm_unit];
    for (int r = 0; r < int'(Rows); r++) begin
      if (32'(arm_entry) % Rows == 32'(r)) waits_d[r] = taken_q[arm_unit][r] ^ !(found.malformed || direct_arm);
    end
  end
  always_ff @(posedge clk_i) begin
    if (arm) waits_q[arm_unit] <= waits_d;
  end
  // Nothing else has written the unit's word since the first step read it.
  always_ff @(posedge clk_i) begin
    if (test_valid_q && go) taken_q[test_unit_q] <= taken_word_q ^ ready;
  end
  assign waits_word = waits_q[window_unit_q];
  assign taken_word = taken_q[window_unit_q];

  for (genvar r = 0; r < int'(Rows); r++) begin : gen_test
    (* ram_style = "distributed" *) logic [LevelWidth*Window:0] levels_q [Units];

    wire own_arm = arm && 32'(arm_entry) % Rows == 32'(r);
    always_ff @(posedge clk_i) begin
      if (own_arm) levels_q[arm_unit] <= {found.trivial, arm_levels};
    end
    level_e [Window-1:0] levels;
    assign {row_trivial[r], levels} = levels_q[test_unit_q];

    logic [Window-1:0] precedes;
    for (genvar c = 0; c < int'(Window); c++) begin : gen_block
      if (c >= int'(Rows)) begin : gen_outside
        assign precedes[c] = !from_head_q[r];
      end else if (c < r) begin : gen_before
        assign precedes[c] = from_head_q[c] || !from_head_q[r];
      end else if (c > r) begin : gen_behind
        assign precedes[c] = from_head_q[c] && !from_head_q[r];
      end else begin : gen_self
        assign precedes[c] = 1'b0;
      end
    end
    // Without a unit to test it is anything: no gates, and nothing for a simulator to compute.
    logic stops;
    always_comb begin
      stops = 'x;
      if (test_valid_q) begin
        stops = 1'b0;
        for (int c = 0; c < int'(Window); c++) stops |= precedes[c] && levels[c] > done_q[c];
      end
    end
    assign blocked[r] = stops;
    assign ready[r] = waiting_q[r] && !blocked[r];
  end

  assign test_left = |(waiting_q & ~ready);
  assign go = !test_valid_q || drain_free;
  assign window_go = go || !window_valid_q;

  // -----------------------------------------------------------------------------------------------
  // Drain: the ready rows of a unit, oldest first. That is from the head up, then those that
  // wrapped.

  logic [Rows-1:0] drain_ready_q, drain_trivial_q, drain_from_head_q, drain_upper, drain_one;
  logic [Rows-1:0] drain_upper_one, drain_any_one;
  unit_t drain_unit_q;
  logic drain_any, drain_upper_any, drain_take, drain_last, drain_trivial;
  logic [RowBits-1:0] drain_row, drain_upper_row, drain_any_row;
  assign drain_slot = slot_t'(drain_unit_q);

  assign drain_upper = drain_ready_q & drain_from_head_q;
  unisono_lowest_one #(.Width(Rows)) u_drain_upper (
    .bits_i(drain_upper), .any_o(drain_upper_any), .index_o(drain_upper_row),
    .one_o(drain_upper_one)
  );
  unisono_lowest_one #(.Width(Rows)) u_drain_any (
    .bits_i(drain_ready_q), .any_o(drain_any), .index_o(drain_any_row), .one_o(drain_any_one)
  );
  assign drain_row = drain_upper_any ? drain_upper_row : drain_any_row;
  assign drain_one = drain_upper_any ? drain_upper_one : drain_any_one;
  assign drain_trivial = |(drain_one & drain_trivial_q);
  assign drain_id = {drain_slot, base_of(drain_unit_q) | entry_t'(drain_row)};
  assign drain_any_trivial = |(drain_ready_q & drain_trivial_q);
  assign trivial_complete = drain_any && drain_trivial && !clear[drain_slot];
  assign drain_take = drain_any && (drain_trivial ? own_complete : issue_ready_i && !issue_direct);
  // The last row leaves, whichever place it has: what is one of one needs no choice.
  assign drain_last = (drain_ready_q & (drain_ready_q - 1'b1)) == '0;
  assign drain_free = drain_last && (!drain_any || (drain_any_trivial ? !complete_valid_i && !clear[drain_slot]
                                                                      : issue_ready_i && !issue_direct));

  assign issue_valid_o = issue_direct || (drain_any && !drain_trivial);
  assign issue_id_o = issue_id;
  assign issue_generation_o = generation_q[issue_slot];

  always_ff @(posedge clk_i) begin
    if (drain_free) begin
      drain_unit_q <= test_unit_q;
      drain_trivial_q <= row_trivial;
      drain_from_head_q <= from_head_q;
    end
    if (!rst_ni) begin
      drain_ready_q <= '0;
    end else if (drain_free) begin
      drain_ready_q <= test_valid_q && !clear[slot_t'(test_unit_q)] ? ready : '0;
    end else if (clear[drain_slot]) begin
      drain_ready_q <= '0;
    end else if (drain_take) begin
      drain_ready_q <= drain_ready_q & ~drain_one;
    end
  end

  // -----------------------------------------------------------------------------------------------
  // Retirement. A call is looked at after a completion of its oldest move, and then until one is
  // found that is not.

  logic [Calls-1:0] near_head, look_at_q, look_after_q, look_later;
  logic [Calls-1:0] look_one, look_any_one, look_later_one;
  logic look_any, look_later_any, retire_valid_q, retire_more;
  count_t retire_next;
  slot_t look_slot, look_any_slot, look_later_slot, retire_slot_q;

  assign look_later = look_at_q & look_after_q;
  unisono_lowest_one #(.Width(Calls)) u_look_any (
    .bits_i(look_at_q), .any_o(look_any), .index_o(look_any_slot), .one_o(look_any_one)
  );
  unisono_lowest_one #(.Width(Calls)) u_look_later (
    .bits_i(look_later), .any_o(look_later_any), .index_o(look_later_slot), .one_o(look_later_one)
  );
  assign look_slot = look_later_any ? look_later_slot : look_any_slot;
  assign look_one = look_later_any ? look_later_one : look_any_one;

  // The one behind the head too: the head may be retiring.
  for (genvar s = 0; s < int'(Calls); s++) begin : gen_near_head
    wire [EntryWidth-1:0] oldest = head_q[s][EntryWidth-1:0];
    wire [EntryWidth-1:0] second = oldest + 1'b1;
    assign near_head[s] = complete_entry == oldest || complete_entry == second;
  end

  assign retire_slot = retire_slot_q;
  assign retire_entry = head_q[retire_slot][EntryWidth-1:0];
  assign retire = retire_valid_q && head_q[retire_slot] != armed_q[retire_slot] &&
                  !head_incomplete && !clear[retire_slot];
  // A look in vain would cost another call its turn: so the one behind is looked at as well.
  assign retire_next = head_q[retire_slot] + 1'b1;
  assign retire_more = retire && retire_next != armed_q[retire_slot] && !next_incomplete;

  always_ff @(posedge clk_i) begin
    retire_slot_q <= look_slot;
    if (!rst_ni) begin
      look_at_q <= '0;
      look_after_q <= '0;
      retire_valid_q <= 1'b0;
      retired_valid_o <= 1'b0;
    end else begin
      retire_valid_q <= look_any;
      if (look_any) begin
        for (int s = 0; s < int'(Calls); s++) look_after_q[s] <= slot_t'(s) > look_slot;
      end
      for (int s = 0; s < int'(Calls); s++) begin
        if (complete && complete_slot == slot_t'(s) && near_head[s]) begin
          look_at_q[s] <= 1'b1;
        end else if (retire_valid_q && retire_slot == slot_t'(s) && !retire_more) begin
          look_at_q[s] <= 1'b0;
        end
      end
      retired_valid_o <= retire;
    end
    retired_id_o <= {retire_slot, retire_entry};
  end
  wire unused_look = ^look_one;

  // -----------------------------------------------------------------------------------------------
  // Calls that are closed and empty.

  logic [Calls-1:0] ended, ended_one;
  logic ended_any;
  slot_t ended_slot;

  assign ended = closed_q & empty_o & ~clear;
  unisono_lowest_one #(.Width(Calls)) u_ended (
    .bits_i(ended), .any_o(ended_any), .index_o(ended_slot), .one_o(ended_one)
  );
  wire unused_ended = ^ended_one;
  wire unused_probes = ^unused_probe;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      finished_valid_q <= 1'b0;
    end else if (finished_valid_q) begin
      finished_valid_q <= !finished_ready_i && !clear[finished_slot_q];
    end else begin
      finished_valid_q <= ended_any;
      finished_slot_q <= ended_slot;
    end
  end
  assign finished_valid_o = finished_valid_q;
  assign finished_slot_o = finished_slot_q;

endmodule
