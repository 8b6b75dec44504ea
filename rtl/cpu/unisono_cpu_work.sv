// Items of work for the microcontroller, one at a time, and the steps of their slots.
//
// An item selects its slot, which is stepped until the core asks for the next item: then the step is told. If no item
// waits then and the slot has room for one more step, the slot is stepped again first, without an item; a program that
// has ended or failed is not.
//
// Latency: an item can be taken in the cycle after it came; a step is told in the cycle after the core has asked. A
// slot is stepped again 2 cycles after its last move was taken, when its room counts that move. Throughput: an item
// per 2 cycles. Restrictions: the core asks for an item only when it has done with the last one.

module unisono_cpu_work
  import unisono_cpu_pkg::*;
(
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 work_valid_i,
  output logic                 work_ready_o,
  input  work_t                work_i,
  input  logic [Slots-1:0]     room_i,             // by slot: for one more step
  output logic                 step_valid_o,
  output logic [SlotWidth-1:0] step_slot_o,

  // The core: it asks, it gets its answer, and its program has ended or failed. A fault stops all.
  input  logic                 asks_i,
  input  logic                 answered_i,
  input  logic                 ends_i,
  input  logic                 fault_i,
  input  logic                 move_valid_i,       // a move is on offer,
  input  logic                 blocked_i,          // and not taken

  // An item is there, the slot may be stepped again, an item is taken; the slot that is stepped.
  output logic                 there_o,
  output work_t                item_o,
  output logic                 again_o,
  output logic                 takes_o,
  output logic [SlotWidth-1:0] slot_o
);

  logic work_valid_q;
  work_t work_q;
  logic stepping_q, ended_q, step_done;
  logic [SlotWidth-1:0] slot_q;
  logic [1:0] settled_q;                           // cycles without a move that the room may not count yet, up to 2

  assign work_ready_o = !work_valid_q;
  assign takes_o      = answered_i && !fault_i && work_valid_q;
  assign again_o      = stepping_q && !ended_q && !work_valid_q && room_i[slot_q] && settled_q[1] && !move_valid_i;
  assign step_done    = asks_i && stepping_q && !fault_i && !blocked_i && !again_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      work_valid_q <= 1'b0;
      stepping_q <= 1'b0;
      slot_q <= '0;
    end else begin
      if (work_valid_i && work_ready_o) work_valid_q <= 1'b1;
      else if (takes_o) work_valid_q <= 1'b0;
      if (takes_o) stepping_q <= work_q.kind != WorkControl;
      else if (step_done) stepping_q <= 1'b0;
      if (takes_o && work_q.kind != WorkControl) slot_q <= work_q.slot;
    end
    if (work_valid_i && work_ready_o) work_q <= work_i;
    settled_q <= move_valid_i || !rst_ni ? 2'b00 : {settled_q[0], 1'b1};
    step_valid_o <= rst_ni && step_done;
    step_slot_o <= slot_q;
  end

  always_ff @(posedge clk_i) begin
    if (takes_o) ended_q <= 1'b0;
    else if (ends_i) ended_q <= 1'b1;
  end

  assign there_o = work_valid_q;
  assign item_o  = work_q;
  assign slot_o  = slot_q;

`ifndef SYNTHESIS
  unisono_handshake_check #(.Width($bits(work_i))) u_work_held (
    .clk_i, .rst_ni, .valid_i(work_valid_i), .ready_i(work_ready_o), .data_i(work_i)
  );
  always_ff @(posedge clk_i) begin
    if (rst_ni && work_valid_i) work_known: assert (work_i.kind inside {WorkStart, WorkMore, WorkControl});
    if (rst_ni && answered_i) answers_who_asks: assert (asks_i);
  end
`endif

endmodule
