// A call is forgotten: at once, if nothing of it is here; of one that failed, what each of its pairs holds is given
// back first, rank by rank. And records are made void, all after a reset, a slot's before its epochs begin anew.
//
// Tells what is done in the steps ClearRead, ClearTake, WipeRead and Wipe, and keeps how far they have come.
//
// Latency: none. Throughput: a record per 2 cycles.

module unisono_rbm_clear
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        clear_valid_i,
  input  slot_t       clear_slot_i,
  input  logic        clears_i,                      // at once
  input  logic        epoch_over_i,                  // not before its records have been made void
  output logic        clear_done_o,
  output rank_t       rank_o,                        // that is next

  // The pair under way, and what is known of it.
  input  state_e      state_i,
  input  pair_t       pair_i,
  input  logic        known_i,
  // Of records other fields count elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  record_t     seen_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic        takes_over_i, must_wait_i,     // what is early for it is its own; not yet

  output clear_step_t step_o,
  output logic        forgets_o,                     // all of the slot
  output logic        wipe_o                         // all records are made void
);

  rank_t rank_d, rank_q;
  logic cleared_d, cleared_q, wipe_all_d, wipe_all_q, wipe_ends;

  assign wipe_ends = pair_i.peer == '1 && (!wipe_all_q || pair_i.slot == '1);

  always_comb begin
    step_o = '{state: Idle, pair: pair_i, default: 1'b0};
    rank_d = rank_q;
    cleared_d = cleared_q && clear_valid_i;
    wipe_all_d = wipe_all_q;
    forgets_o = 1'b0;

    unique case (state_i)
      Idle: begin
        if (clears_i) begin
          forgets_o = !epoch_over_i;
          cleared_d = !epoch_over_i;
        end
      end

      ClearRead: begin
        if (takes_over_i) begin
          if (!must_wait_i) step_o.state = Adopt;
        end else if (known_i && seen_i.written != '0) begin
          // Segments on their way to buffers come first.
        end else if (known_i && seen_i.listed) begin
          step_o.state = ClearTake;
        end else begin
          if (known_i) begin
            step_o.returns = seen_i.posted && seen_i.rendezvous && seen_i.ample;
            step_o.returns_next = seen_i.next.posted && seen_i.next.ample;
            step_o.writes = 1'b1;
          end
          rank_d = rank_q + 1'b1;
          if (rank_q == '1) begin
            cleared_d = !epoch_over_i;
            forgets_o = !epoch_over_i;
            if (epoch_over_i) begin
              step_o.pair = '{slot: clear_slot_i, peer: '0};
              step_o.state = WipeRead;
            end
          end
        end
      end
      ClearTake: begin
        step_o.writes = 1'b1;
        step_o.gives_back = 1'b1;
      end

      WipeRead: begin
        step_o.reads = 1'b1;
        step_o.state = Wipe;
      end
      Wipe: begin
        step_o.voids = 1'b1;
        step_o.writes = 1'b1;
        step_o.pair = pair_i + 1'b1;
        step_o.state = WipeRead;
        if (wipe_ends) begin
          wipe_all_d = 1'b0;
          forgets_o = !wipe_all_q;
          cleared_d = !wipe_all_q;
          step_o.state = Idle;
        end
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rank_q <= '0;
      cleared_q <= 1'b0;
      wipe_all_q <= 1'b1;
    end else begin
      rank_q <= rank_d;
      cleared_q <= cleared_d;
      wipe_all_q <= wipe_all_d;
    end
  end

  assign clear_done_o = cleared_q;
  assign rank_o       = rank_q;
  assign wipe_o       = wipe_all_q;

endmodule
