// Examines the rows of a unit: which of them wait for nothing any more.
//
// A row says for each entry of the window how far it must be; see unisono_scoreboard. Two steps: how far each entry of
// the call is, in numbers of the unit; then all rows of the unit are compared with it. What is ready is given out once,
// when it is taken.
//
// Latency: 2 cycles from the choice of a unit to its ready rows. Throughput: a unit per cycle. Restrictions: a unit is
// not chosen while it is in a step; what happens to its call in the last cycle of the first step is not seen.

module unisono_scoreboard_rows
  import unisono_dmp_pkg::*;
#(
  parameter int unsigned Calls = unisono_cclo_pkg::Calls,
  parameter int unsigned Window = unisono_spec_pkg::Window,
  parameter int unsigned Rows = 8,
  localparam int unsigned Units = Calls * Window / Rows,
  localparam int unsigned UnitWidth = $clog2(Units),
  localparam int unsigned SlotWidth = $clog2(Calls),
  localparam int unsigned EntryWidth = $clog2(Window),
  localparam int unsigned RowBits = $clog2(Rows)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [Calls-1:0]     clear_i,

  // A row is written. It waits, unless it never is ready, or is on offer already.
  input  logic                 arm_i,
  input  logic [UnitWidth-1:0] arm_unit_i,
  input  logic [RowBits-1:0]   arm_row_i,
  input  logic                 arm_waits_i,
  input  logic                 arm_trivial_i,
  input  level_e [Window-1:0]  arm_levels_i,

  // The unit that is next, if any; that in the first step, and of its call the window and what has not been done.
  input  logic                 pick_i,
  input  logic [UnitWidth-1:0] pick_unit_i,
  output logic                 window_valid_o,
  output logic [UnitWidth-1:0] window_unit_o,
  input  logic [EntryWidth:0]  head_i,
  input  logic [EntryWidth:0]  armed_i,
  input  logic [Window-1:0]    unissued_i,
  input  logic [Window-1:0]    unconsumed_i,
  input  logic [Window-1:0]    unsent_i,
  input  logic [Window-1:0]    incomplete_i,

  // That in the second step: its ready rows, those that complete instead of issuing, and those from the head on, which
  // are older than the others.
  output logic                 test_valid_o,
  output logic [UnitWidth-1:0] test_unit_o,
  output logic [Rows-1:0]      ready_o,
  output logic [Rows-1:0]      trivial_o,
  output logic [Rows-1:0]      from_head_o,
  input  logic                 taken_i,

  // Some of its rows still wait.
  output logic                 left_valid_o,
  output logic [UnitWidth-1:0] left_unit_o
);

  typedef logic [SlotWidth-1:0] slot_t;
  typedef logic [EntryWidth-1:0] entry_t;
  typedef logic [EntryWidth:0] count_t;         // move numbers modulo 2 * Window
  typedef logic [UnitWidth-1:0] unit_t;         // {group, slot}

  // The first entry of a unit's group.
  function automatic entry_t base_of(unit_t unit);
    return entry_t'((32'(unit) >> SlotWidth) << RowBits);
  endfunction

  logic go, window_go;                          // the second step takes a unit; the first one does
  logic window_valid_q;
  unit_t window_unit_q;
  logic test_valid_q, test_left;
  unit_t test_unit_q;

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

  assign window_base = base_of(window_unit_q);
  assign window_head = head_i;
  assign window_armed = armed_i;
  assign head_number = window_head[EntryWidth-1:0] - window_base;
  assign armed_number = window_armed[EntryWidth-1:0] - window_base;
  assign rotated_unissued = Window'({unissued_i, unissued_i} >> window_base);
  assign rotated_unconsumed = Window'({unconsumed_i, unconsumed_i} >> window_base);
  assign rotated_unsent = Window'({unsent_i, unsent_i} >> window_base);
  assign rotated_incomplete = Window'({incomplete_i, incomplete_i} >> window_base);

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
    if (window_go && pick_i) window_unit_q <= pick_unit_i;
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
      window_valid_q <= window_go ? pick_i : window_valid_q && !clear_i[slot_t'(window_unit_q)];
      test_valid_q <= go ? window_valid_q && !clear_i[slot_t'(window_unit_q)]
                         : test_valid_q && !clear_i[slot_t'(test_unit_q)];
    end
    left_unit_o <= test_unit_q;
    left_valid_o <= rst_ni && go && test_valid_q && test_left && !clear_i[slot_t'(test_unit_q)];
  end

  // -----------------------------------------------------------------------------------------------
  // Second step: the rows of the unit. Whether a row waits is the difference of two bits, as in
  // unisono_pending_bits: one is written when the row is, the other when it is found ready.

  logic [Rows-1:0] blocked;
  (* ram_style = "distributed" *) logic [Rows-1:0] waits_q [Units];
  (* ram_style = "distributed" *) logic [Rows-1:0] taken_q [Units];
  logic [Rows-1:0] waits_d;

  // A malformed move does not wait: it is never ready. Nor does one that is offered as it is armed.
  always_comb begin
    waits_d = waits_q[arm_unit_i];
    for (int r = 0; r < int'(Rows); r++) begin
      if (arm_row_i == RowBits'(r)) waits_d[r] = taken_q[arm_unit_i][r] ^ arm_waits_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (arm_i) waits_q[arm_unit_i] <= waits_d;
  end
  // Nothing else has written the unit's word since the first step read it.
  always_ff @(posedge clk_i) begin
    if (test_valid_q && go) taken_q[test_unit_q] <= taken_word_q ^ ready_o;
  end
  assign waits_word = waits_q[window_unit_q];
  assign taken_word = taken_q[window_unit_q];

  for (genvar r = 0; r < int'(Rows); r++) begin : gen_test
    (* ram_style = "distributed" *) logic [LevelWidth*Window:0] levels_q [Units];

    wire own_arm = arm_i && arm_row_i == RowBits'(r);
    always_ff @(posedge clk_i) begin
      if (own_arm) levels_q[arm_unit_i] <= {arm_trivial_i, arm_levels_i};
    end
    level_e [Window-1:0] levels;
    assign {trivial_o[r], levels} = levels_q[test_unit_q];

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
    assign ready_o[r] = waiting_q[r] && !blocked[r];
  end

  assign test_left = |(waiting_q & ~ready_o);
  assign go = !test_valid_q || taken_i;
  assign window_go = go || !window_valid_q;

  assign window_valid_o = window_valid_q;
  assign window_unit_o = window_unit_q;
  assign test_valid_o = test_valid_q;
  assign test_unit_o = test_unit_q;
  assign from_head_o = from_head_q;

endmodule
