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

module unisono_scoreboard
  import unisono_dmp_pkg::level_e;
#(
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
  // Push: it is found out what a move waits for.

  logic push_more;
  logic arm_trivial, arm_malformed, arm_streams, arm_free;
  level_e [Window-1:0] arm_levels;
  unit_t arm_unit;

  assign push_ready_o = may_push[push_slot_i] && !push_more;
  assign push_entry_o = tail_q[push_slot_i][EntryWidth-1:0];
  assign push = push_valid_i && push_ready_o;
  assign arm_unit = unit_of(arm_slot, arm_entry);

  unisono_scoreboard_push #(.Calls(Calls), .Window(Window), .Ranks(Ranks), .Rows(Rows)) u_push (
    .clk_i, .rst_ni, .clear_i(clear), .push_i(push), .push_slot_i, .push_entry_i(push_entry_o),
    .push_lapped_i(lapped_q[push_slot_i]), .push_dependencies_i, .push_streams_i, .push_distance_i, .push_receives_i,
    .push_sends_i, .push_trivial_i, .more_o(push_more), .error_valid_o, .error_id_o, .arm_o(arm),
    .arm_slot_o(arm_slot), .arm_entry_o(arm_entry), .arm_trivial_o(arm_trivial), .arm_malformed_o(arm_malformed),
    .arm_streams_o(arm_streams), .arm_free_o(arm_free), .arm_levels_o(arm_levels)
  );

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
  assign direct_arm = arm && !arm_trivial && !arm_malformed && !direct_q &&
                      (head_q[arm_slot] == armed_q[arm_slot] || arm_free);
  assign direct_id = direct_q ? direct_id_q : {arm_slot, arm_entry};
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
  // Which unit is examined next, and which of its rows are ready.

  logic pick, window_valid, test_valid, left_valid;
  unit_t pick_unit, window_unit, test_unit, left_unit;
  logic [Rows-1:0] ready, row_trivial, from_head;
  logic drain_free, drain_any_trivial;
  slot_t drain_slot;

  unisono_scoreboard_units #(.Calls(Calls), .Units(Units)) u_units (
    .clk_i, .rst_ni, .clear_i(clear), .finish_i(finish), .arm_i(arm), .arm_unit_i(arm_unit),
    .arm_streams_i(arm_streams), .left_valid_i(left_valid), .left_unit_i(left_unit), .consumed_i(consumed_valid_i),
    .consumed_slot_i(consumed_slot), .sent_i(sent_valid_i), .sent_slot_i(sent_slot), .complete_i(complete_valid_i),
    .complete_slot_i(complete_id_i[IdWidth-1:EntryWidth]), .trivial_i(drain_any_trivial), .trivial_slot_i(drain_slot),
    .issued_i(issued_q), .issued_slot_i(issued_slot_q), .window_valid_i(window_valid), .window_unit_i(window_unit),
    .test_valid_i(test_valid), .test_unit_i(test_unit), .pick_o(pick), .pick_unit_o(pick_unit)
  );

  assign examined_slot = slot_t'(window_unit);

  unisono_scoreboard_rows #(.Calls(Calls), .Window(Window), .Rows(Rows)) u_rows (
    .clk_i, .rst_ni, .clear_i(clear), .arm_i(arm), .arm_unit_i(arm_unit), .arm_row_i(arm_entry[RowBits-1:0]),
    .arm_waits_i(!(arm_malformed || direct_arm)), .arm_trivial_i(arm_trivial), .arm_levels_i(arm_levels),
    .pick_i(pick), .pick_unit_i(pick_unit), .window_valid_o(window_valid), .window_unit_o(window_unit),
    .head_i(head_q[examined_slot]), .armed_i(armed_q[examined_slot]), .unissued_i(unissued),
    .unconsumed_i(unconsumed), .unsent_i(unsent), .incomplete_i(incomplete), .test_valid_o(test_valid),
    .test_unit_o(test_unit), .ready_o(ready), .trivial_o(row_trivial), .from_head_o(from_head),
    .taken_i(drain_free), .left_valid_o(left_valid), .left_unit_o(left_unit)
  );

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
      drain_unit_q <= test_unit;
      drain_trivial_q <= row_trivial;
      drain_from_head_q <= from_head;
    end
    if (!rst_ni) begin
      drain_ready_q <= '0;
    end else if (drain_free) begin
      drain_ready_q <= test_valid && !clear[slot_t'(test_unit)] ? ready : '0;
    end else if (clear[drain_slot]) begin
      drain_ready_q <= '0;
    end else if (drain_take) begin
      drain_ready_q <= drain_ready_q & ~drain_one;
    end
  end

  // -----------------------------------------------------------------------------------------------
  // Retirement.

  unisono_scoreboard_retire #(.Calls(Calls), .Window(Window)) u_retire (
    .clk_i, .rst_ni, .clear_i(clear), .head_i(head_q), .armed_i(armed_q), .complete_i(complete),
    .complete_slot_i(complete_slot), .complete_entry_i(complete_entry), .retire_slot_o(retire_slot),
    .retire_entry_o(retire_entry), .head_incomplete_i(head_incomplete), .next_incomplete_i(next_incomplete),
    .retire_o(retire), .retired_valid_o, .retired_id_o
  );

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
