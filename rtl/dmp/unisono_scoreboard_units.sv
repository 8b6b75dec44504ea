// Which unit of rows is examined next: one that has waiting rows (live) and to whose call something has happened
// (dirty), by turns.
//
// Latency: none. Throughput: a unit per cycle. Restrictions: a unit that is named as examined is not picked.

module unisono_scoreboard_units #(
  parameter int unsigned Calls = unisono_cclo_pkg::Calls,
  parameter int unsigned Units = 32,
  localparam int unsigned SlotWidth = $clog2(Calls),
  localparam int unsigned UnitWidth = $clog2(Units)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [Calls-1:0]     clear_i,
  input  logic [Calls-1:0]     finish_i,           // a call is over, and its slot free

  // A row of the unit begins to wait, for an issue too; or some of its rows still wait.
  input  logic                 arm_i,
  input  logic [UnitWidth-1:0] arm_unit_i,
  input  logic                 arm_streams_i,
  input  logic                 left_valid_i,
  input  logic [UnitWidth-1:0] left_unit_i,

  // What has happened to a call.
  input  logic                 consumed_i,
  input  logic [SlotWidth-1:0] consumed_slot_i,
  input  logic                 sent_i,
  input  logic [SlotWidth-1:0] sent_slot_i,
  input  logic                 complete_i,
  input  logic [SlotWidth-1:0] complete_slot_i,
  input  logic                 trivial_i,          // a move that completes instead of issuing
  input  logic [SlotWidth-1:0] trivial_slot_i,
  input  logic                 issued_i,
  input  logic [SlotWidth-1:0] issued_slot_i,

  // The units that are examined; the turn goes on behind the first of them.
  input  logic                 window_valid_i,
  input  logic [UnitWidth-1:0] window_unit_i,
  input  logic                 test_valid_i,
  input  logic [UnitWidth-1:0] test_unit_i,
  output logic                 pick_o,
  output logic [UnitWidth-1:0] pick_unit_o
);

  typedef logic [SlotWidth-1:0] slot_t;
  typedef logic [UnitWidth-1:0] unit_t;         // {group, slot}

  logic [Units-1:0] live_q, live_set, dirty_q, dirty_set;
  logic [Units-1:0] streams_q;                  // some row has waited for an issue
  logic [Units-1:0] candidates, later, after, pick_any_one, pick_later_one;
  logic pick_later;
  unit_t pick_any_unit, pick_later_unit;

  // The first step reads what has been written before its last cycle; what is set in that cycle
  // stays. A unit that is in a step must not be picked: which of its rows are ready is marked only
  // at the end of the second.
  for (genvar u = 0; u < int'(Units); u++) begin : gen_unit
    localparam int unsigned Slot = u % Calls;
    wire in_first_step = window_valid_i && window_unit_i == unit_t'(u);
    wire own_arm = arm_i && arm_unit_i == unit_t'(u);
    // Events that turn out to be of an old generation do no harm here.
    assign dirty_set[u] = own_arm || (consumed_i && consumed_slot_i == slot_t'(Slot)) ||
                          (sent_i && sent_slot_i == slot_t'(Slot)) ||
                          (complete_i && complete_slot_i == slot_t'(Slot)) ||
                          (trivial_i && trivial_slot_i == slot_t'(Slot)) ||
                          (issued_i && streams_q[u] && issued_slot_i == slot_t'(Slot));
    assign live_set[u] = own_arm || (left_valid_i && left_unit_i == unit_t'(u));
    assign candidates[u] = (live_q[u] || live_set[u]) && (dirty_q[u] || dirty_set[u]) &&
                           !in_first_step && !(test_valid_i && test_unit_i == unit_t'(u)) && !clear_i[Slot];
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i[Slot] || finish_i[Slot]) begin
        streams_q[u] <= 1'b0;
      end else if (own_arm && arm_streams_i) begin
        streams_q[u] <= 1'b1;
      end
      if (!rst_ni) begin
        live_q[u] <= 1'b0;
        dirty_q[u] <= 1'b0;
      end else begin
        live_q[u] <= (live_set[u] || (live_q[u] && !in_first_step)) && !clear_i[Slot];
        dirty_q[u] <= dirty_set[u] || (dirty_q[u] && !in_first_step);
      end
    end
  end
  // By turns: the one behind the last, if any.
  assign after = ({Units{1'b1}} << 1) << window_unit_i;
  assign later = candidates & after;

  unisono_lowest_one #(.Width(Units)) u_pick_any (
    .bits_i(candidates), .any_o(pick_o), .index_o(pick_any_unit), .one_o(pick_any_one)
  );
  unisono_lowest_one #(.Width(Units)) u_pick_later (
    .bits_i(later), .any_o(pick_later), .index_o(pick_later_unit), .one_o(pick_later_one)
  );
  assign pick_unit_o = pick_later ? pick_later_unit : pick_any_unit;
  wire unused_picks = ^{pick_any_one, pick_later_one};

endmodule
