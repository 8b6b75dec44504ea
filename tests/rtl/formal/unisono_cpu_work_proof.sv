// Proof of unisono_cpu_work: items come once and in their order, and the step of each slot is told once, before or as
// the next item is taken.
//
// What it asks of its users: the core asks until it is answered, is answered when an item is there, the slot may be
// stepped again or there is a fault, and not while a move waits. The proof keeps the item that has come and was not
// taken, and the slot whose step is still to be told.

module unisono_cpu_work_proof
  import unisono_cpu_pkg::*;
(
  input logic             clk_i,
  input logic             rst_ni,
  input logic             work_valid_i,
  input work_t            work_i,
  input logic [Slots-1:0] room_i,
  input logic             asks_i,
  input logic             answered_i,
  input logic             ends_i,
  input logic             fault_i,
  input logic             move_valid_i,
  input logic             blocked_i
);

  logic work_ready, step_valid, there, again, takes;
  logic [SlotWidth-1:0] step_slot, slot;
  work_t item;

  unisono_cpu_work u_dut (
    .clk_i, .rst_ni, .work_valid_i, .work_ready_o(work_ready), .work_i, .room_i, .step_valid_o(step_valid),
    .step_slot_o(step_slot), .asks_i, .answered_i, .ends_i, .fault_i, .move_valid_i, .blocked_i, .there_o(there),
    .item_o(item), .again_o(again), .takes_o(takes), .slot_o(slot)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end

  logic held_q, due_q, taken_q;                    // an item; a step; an item was taken in the cycle before
  logic due_d;
  work_t held_item_q;
  logic [SlotWidth-1:0] due_slot_q;
  always_comb if (rst_ni) begin
    answers_who_asks: assume (!answered_i || (asks_i && !blocked_i && (there || again || fault_i)));
    kinds_of_items: assume (!work_valid_i || work_i.kind inside {WorkStart, WorkMore, WorkControl});
  end

  assign due_d = takes ? item.kind != WorkControl : due_q && !(step_valid && !taken_q);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= 1'b0;
      due_q <= 1'b0;
      taken_q <= 1'b0;
    end else begin
      if (work_valid_i && work_ready) begin
        held_q <= 1'b1;
        held_item_q <= work_i;
      end else if (takes) begin
        held_q <= 1'b0;
      end
      due_q <= due_d;
      taken_q <= takes && due_q && !(step_valid && !taken_q);
      if (takes) due_slot_q <= item.slot;
    end
  end

  logic [SlotWidth-1:0] before_q;
  always_ff @(posedge clk_i) before_q <= due_slot_q;

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      none_lost_or_twice: assert (there == held_q && work_ready == !held_q);
      if (there) the_one_that_came: assert (item == held_item_q);
      if (takes) takes_what_is_there: assert (there);
      not_again_and_next: assert (!(takes && again));
      // A step that is due when the next item is taken is told in the very next cycle; others before.
      if (taken_q) told_at_the_latest_with_the_next: assert (step_valid && step_slot == before_q);
      else if (step_valid) told_once: assert (due_q && step_slot == due_slot_q);
      if (due_q) slot_of_the_item: assert (slot == due_slot_q);
    end
  end

endmodule
