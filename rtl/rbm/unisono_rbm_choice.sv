// Which operation on a pair is next, when none is under way.
//
// The order: segments that memory has; early ones of communicators that begin anew; clears; the dispatcher's take,
// head, post and adopt; the answer of an offer; grants; the head of Rx. What was answered in the cycle before is not
// begun again: its user may still show it.
//
// Latency: none, but for answers, which count in the next cycle. Throughput: one operation per cycle.

module unisono_rbm_choice
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
(
  input  logic     clk_i,
  input  logic     rst_ni,

  // A written segment.
  input  logic     shown_valid_i, shown_early_i,
  input  pair_t    shown_pair_i,

  // Communicators that begin anew: their lists are gone through; then they have begun, once nothing is under way.
  input  logic     sweeps_i, early_has_i,
  input  logic     renews_i, early_pending_i, payload_idle_i, offering_i,

  // A clear, at once or rank by rank; what is at the head of Rx has been stored then, or has gone to the lane.
  input  logic     clear_valid_i, cleared_i, clear_failed_i, epoch_over_i, signal_full_i,
  input  pair_t    clear_pair_i,

  // The dispatcher's, and what it is answered in this cycle.
  input  logic     take_valid_i, take_ready_i,
  input  pair_t    take_pair_i,
  input  logic     head_valid_i, head_answer_i,
  input  pair_t    head_pair_i,
  input  logic     post_valid_i, post_ready_i,
  input  pair_t    post_pair_i,
  input  logic     adopt_valid_i, adopt_ready_i,
  input  pair_t    adopt_pair_i,

  // The answer of an offer, a grant, the head of Rx. The record of a write's pair is its token's.
  input  logic     answered_i,
  input  pair_t    offer_pair_i,
  input  logic     grants_valid_i,
  input  pair_t    grants_pair_i,
  input  logic     received_valid_i, is_write_i,
  input  pair_t    token_pair_i,

  input  pair_t    pair_i,                           // stays the pair under way if the operation has none
  output choice_t  choice_o,
  output early_op_e early_op_o                       // apart, for what is looked at tells of a sweep's next step
);

  logic take_ready_q, head_answer_q, post_ready_q, adopt_ready_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      take_ready_q <= 1'b0;
      head_answer_q <= 1'b0;
      post_ready_q <= 1'b0;
      adopt_ready_q <= 1'b0;
    end else begin
      take_ready_q <= take_ready_i;
      head_answer_q <= head_answer_i;
      post_ready_q <= post_ready_i;
      adopt_ready_q <= adopt_ready_i;
    end
  end

  assign early_op_o = shown_valid_i ? EarlyLook : sweeps_i ? EarlySweep : EarlyNone;

  function automatic choice_t begins(state_e step, pair_t pair);
    return '{step: step, reads: 1'b1, pair: pair, default: 1'b0};
  endfunction

  always_comb begin
    choice_o = begins(Idle, pair_i);
    choice_o.reads = 1'b0;
    if (shown_valid_i) begin
      choice_o = begins(shown_early_i ? AppendEarly : Append, shown_pair_i);
    end else if (sweeps_i) begin
      if (early_has_i) choice_o.step = AdoptRead;
    end else if (renews_i && !early_pending_i && payload_idle_i && !offering_i) begin
      choice_o.renews = 1'b1;
    end else if (clear_valid_i && !cleared_i && !clear_failed_i) begin
      choice_o.clears = 1'b1;
      if (epoch_over_i) begin
        choice_o.pair = '{slot: clear_pair_i.slot, peer: '0};
        choice_o.step = WipeRead;
      end
    end else if (clear_valid_i && !cleared_i && !offering_i && !signal_full_i) begin
      choice_o = begins(ClearRead, clear_pair_i);
    end else if (take_valid_i && !take_ready_q) begin
      choice_o = begins(TakeRead, take_pair_i);
    end else if (head_valid_i && !head_answer_q) begin
      choice_o = begins(HeadRead, head_pair_i);
    end else if (post_valid_i && !post_ready_q) begin
      choice_o = begins(PostRead, post_pair_i);
    end else if (adopt_valid_i && !adopt_ready_q) begin
      choice_o = begins(AdoptAsk, adopt_pair_i);
    end else if (answered_i) begin
      choice_o = begins(Offered, offer_pair_i);
    end else if (grants_valid_i) begin
      choice_o = begins(Grant, grants_pair_i);
    end else if (received_valid_i && !offering_i && payload_idle_i && !renews_i) begin
      choice_o = begins(Segment, token_pair_i);
      choice_o.by_match = !is_write_i;
    end
  end

endmodule
