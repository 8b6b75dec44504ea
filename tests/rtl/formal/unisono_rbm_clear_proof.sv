// Proof of unisono_rbm_clear: a call that failed is not forgotten before each of its pairs has been passed, and a pair
// is passed only when nothing of it is left.
//
// What it asks of its users: the operations go from step to step as the module says, others come between; a call that
// is cleared stays until that is done. The proof looks at one rank, any, and keeps whether it has been passed.

module unisono_rbm_clear_proof
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
(
  input logic    clk_i,
  input logic    rst_ni,
  input logic    clear_valid_i,
  input logic    failed_i,
  input slot_t   clear_slot_i,
  input logic    epoch_over_i,
  input logic    known_i,
  input record_t seen_i,
  input logic    takes_over_i,
  input logic    must_wait_i,
  input logic    idles_i,                          // another operation, or none, comes in between
  input rank_t   which_i
);

  logic done, forgets, wipe, clears, reads;
  rank_t rank;
  clear_step_t step;
  state_e state_q;
  pair_t pair_q;

  unisono_rbm_clear u_dut (
    .clk_i, .rst_ni, .clear_valid_i, .clear_slot_i, .clears_i(clears), .epoch_over_i, .clear_done_o(done),
    .rank_o(rank), .state_i(state_q), .pair_i(pair_q), .known_i, .seen_i, .takes_over_i, .must_wait_i,
    .step_o(step), .forgets_o(forgets), .wipe_o(wipe)
  );

  logic started_q = 1'b0;
  logic waited_q, failed_q;
  slot_t slot_q;
  rank_t which_q;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    waited_q <= rst_ni && clear_valid_i && !done;
    failed_q <= failed_i;
    slot_q <= clear_slot_i;
    which_q <= which_i;
  end
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end
  always_comb if (started_q) begin
    one_rank: assume (which_i == which_q);
    clear_stays: assume (!waited_q || !rst_ni ||
                         (clear_valid_i && failed_i == failed_q && clear_slot_i == slot_q));
  end

  assign clears = state_q == Idle && !idles_i && clear_valid_i && !done && !failed_i;
  assign reads  = state_q == Idle && !idles_i && clear_valid_i && !done && failed_i;

  logic passes, passed_q, at_q, passes_q;          // the rank is the one; it was passed in the cycle before
  assign passes = state_q == ClearRead && pair_q.peer == which_i && rank == which_i && !takes_over_i &&
                  !(known_i && (seen_i.listed || seen_i.written != '0));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= WipeRead;
      pair_q <= '1;                                // of the records that are made void first, the last is enough
      passed_q <= 1'b0;
      at_q <= 1'b0;
      passes_q <= 1'b0;
    end else begin
      unique case (state_q)
        Idle: begin
          if (reads) begin
            state_q <= ClearRead;
            pair_q <= '{slot: clear_slot_i, peer: rank};
          end else if (clears && epoch_over_i) begin
            state_q <= WipeRead;
            pair_q <= '{slot: clear_slot_i, peer: '0};
          end
        end
        ClearRead, ClearTake, WipeRead, Wipe: begin
          state_q <= step.state;
          pair_q <= step.pair;
        end
        default: state_q <= Idle;
      endcase
      at_q <= rank == which_i;
      passes_q <= passes;
      if (forgets || done) passed_q <= 1'b0;
      else if (passes) passed_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      if (forgets && failed_i) all_are_passed_first: assert (passed_q || passes);
      if (at_q) goes_on_when_it_is_passed: assert ((rank != which_i) == passes_q);
      if (passes) none_is_passed_twice: assert (!passed_q);
      if (forgets) of_a_call_that_is_cleared: assert (clear_valid_i && !done);
      if (step.gives_back) gives_back_what_is_listed: assert (state_q == ClearTake);
    end
  end

endmodule
