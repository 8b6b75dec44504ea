// The steps of clearing a slot: one part after the other. What could give another part work is quiet before that one is
// cleared: moves on their way to the window, the window, the dispatcher, buffers, and jobs that are under way.
//
// Latency: a slot that has nothing anywhere is clear after 6 cycles. Throughput: one slot at a time.

module unisono_core_clear
  import unisono_cclo_pkg::*;
  import unisono_core_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,

  // Held until done, and then taken back.
  input  logic             valid_i,
  input  slot_t            slot_i,
  output logic             done_o,

  // Whose step it is, and whether it has ended.
  output clear_step_t      step_o,
  output logic [Calls-1:0] clearing_o,        // the slot, from the first step on
  input  logic             front_idle_i,      // no move is on its way
  input  logic             dispatcher_done_i,
  input  logic             buffers_done_i,
  input  logic             lanes_idle_i,      // no job of the slot is under way

  // Slots that have calls: one that is cleared has none.
  input  logic [Calls-1:0] active_i,
  output logic [Calls-1:0] active_o
);

  typedef enum logic [2:0] {
    ClearIdle,
    ClearDrain,
    ClearWindow,
    ClearDispatcher,
    ClearBuffers,
    ClearLane,
    ClearDone
  } clear_e;
  clear_e clear_d, clear_q;
  logic [Calls-1:0] one;

  assign one = Calls'(1) << slot_i;
  assign step_o = '{
    drains: clear_q == ClearDrain,
    window: clear_q == ClearWindow,
    dispatcher: clear_q == ClearDispatcher,
    buffers: clear_q == ClearBuffers
  };
  assign done_o = clear_q == ClearDone;
  assign clearing_o = clear_q != ClearIdle ? one : '0;
  assign active_o = active_i & ~(valid_i ? one : '0);

  always_comb begin
    clear_d = clear_q;
    unique case (clear_q)
      ClearIdle: if (valid_i) clear_d = ClearDrain;
      ClearDrain: if (front_idle_i) clear_d = ClearWindow;
      ClearWindow: clear_d = ClearDispatcher;
      ClearDispatcher: if (dispatcher_done_i) clear_d = ClearBuffers;
      ClearBuffers: if (buffers_done_i) clear_d = ClearLane;
      ClearLane: if (lanes_idle_i) clear_d = ClearDone;
      default: if (!valid_i) clear_d = ClearIdle;
    endcase
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) clear_q <= ClearIdle;
    else clear_q <= clear_d;
  end

`ifndef SYNTHESIS
  slot_t slot_q;
  always_ff @(posedge clk_i) begin
    slot_q <= slot_i;
    if (rst_ni && clear_q != ClearIdle && clear_q != ClearDone) begin
      assert (valid_i) else $error("a clear is taken back before it is done");
    end
    if (rst_ni && clear_q != ClearIdle && valid_i) begin
      assert (slot_i == slot_q) else $error("a clear goes on to another slot");
    end
  end
`endif

endmodule
