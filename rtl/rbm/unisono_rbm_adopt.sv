// What is early for a pair is taken over: its list is gone through, segment by segment. And the oldest message is for
// the oldest receive: so a receive that is not the oldest of its key has the oldest asked first, unless that has been
// here.
//
// Tells what is done in the steps AdoptAsk, Adopt, AdoptRead, AdoptCheck, AdoptEnd and PostElder, and keeps who asks,
// and which receive was the oldest.
//
// Latency: none. Throughput: an early segment per 2 cycles.

module unisono_rbm_adopt
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,

  // The step under way, and its pair. The dispatcher asks, so AdoptAsk is next; all of a slot is forgotten.
  input  state_e      state_i,
  input  slot_t       slot_i,
  input  logic        asks_i,
  input  logic        forgets_i,

  // No operation has touched the pair yet; not now; records are swept; the oldest receive of its key.
  input  logic        untouched_i, must_wait_i, sweeps_i,
  input  slot_t       elder_now_i,

  // Of early segments; see unisono_rbm_early.
  input  logic        any_early_i, early_has_i, early_hold_i, early_last_i, early_give_back_i, early_mute_i,
  input  logic        grant_early_i, early_fail_i, early_bad_i,

  output early_op_e   early_op_o,                    // known from the step alone
  output adopt_step_t step_o
);

  logic asked_d, asked_q;                            // the dispatcher waits for what was early
  logic elder_known_d, elder_known_q;                // the oldest receive was found to have been asked for that
  slot_t elder_d, elder_q;

  assign early_op_o = state_i == Adopt ? EarlyBegin : state_i == AdoptRead ? EarlyRead
                      : state_i == AdoptCheck ? EarlyCheck : state_i == AdoptEnd ? EarlyEnd : EarlyNone;

  always_comb begin
    step_o = '{state: Idle, default: 1'b0};
    asked_d = asked_q;
    elder_known_d = elder_known_q;
    elder_d = elder_q;

    unique case (state_i)
      Idle: if (asks_i) asked_d = 1'b1;

      AdoptAsk: begin
        if (!must_wait_i && untouched_i) begin
          step_o.state = Adopt;
        end else if (!must_wait_i) begin
          step_o.ready = asked_q;
          if (!asked_q) begin
            elder_known_d = 1'b1;
            elder_d = slot_i;
          end
        end
      end
      Adopt: step_o.state = any_early_i && early_has_i ? AdoptRead : AdoptEnd;
      AdoptRead: step_o.state = AdoptCheck;
      AdoptCheck: begin
        step_o.state = early_hold_i ? AdoptCheck : early_last_i ? AdoptEnd : AdoptRead;
        step_o.grants = grant_early_i;
        step_o.gives_back = early_give_back_i;
        step_o.mute = early_mute_i;
        step_o.fails = early_fail_i;
        step_o.bad = early_bad_i;
      end
      AdoptEnd: step_o.writes = !sweeps_i;

      PostElder: begin
        step_o.state = Adopt;
        if (elder_now_i != slot_i && !(elder_known_q && elder_q == elder_now_i)) begin
          // This one comes again.
          step_o.asks_elder = 1'b1;
          asked_d = 1'b0;
          step_o.state = AdoptAsk;
        end
      end
      Post: elder_known_d = 1'b0;

      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      asked_q <= 1'b0;
      elder_known_q <= 1'b0;
      elder_q <= '0;
    end else begin
      asked_q <= asked_d;
      elder_known_q <= elder_known_d && !forgets_i;
      elder_q <= elder_d;
    end
  end

endmodule
