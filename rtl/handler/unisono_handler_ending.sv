// The end of a function: what it wrote goes first, then its outcome is offered.
//
// When the output has gone the next function may start, while the outcome waits to be taken; where it ends before
// that, its own outcome waits in turn.
//
// Latency from the function's last cycle to its outcome: 2 cycles, and 1 if something was written. Throughput: a
// function every 2 cycles.
module unisono_handler_ending
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        start_i,  // a function
  input  function_e   function_i,
  input  logic        run_i,  // it runs
  input  logic        last_i,  // and this is its last cycle, of which is kept:
  input  stop_e       stop_i,
  input  logic [31:0] verdict_i,  // if it was not stopped
  input  logic [13:0] word_i,
  input  logic [31:0] executed_i,
  input  logic [16:0] written_i,  // a cycle later

  output logic        end_o,  // its output is to go
  output logic        end_failed_o,
  input  logic        ended_i,  // it has gone
  output logic        over_o,  // this is the last cycle that anything is done about it
  output logic        fails_o,  // with `over_o`: it was stopped, or gave another verdict than 0

  output logic        outcome_valid_o,
  input  logic        outcome_ready_i,
  output outcome_t    outcome_o
);

  outcome_t outcome_q;  // but for its bytes
  assign over_o = end_o && ended_i && (!outcome_valid_o || outcome_ready_i);
  assign end_failed_o = outcome_q.stop != StopNone || outcome_q.verdict[31:1] != '0;
  assign fails_o = outcome_q.stop != StopNone || outcome_q.verdict != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      end_o <= 1'b0;
      outcome_valid_o <= 1'b0;
    end else begin
      if (over_o) end_o <= 1'b0;
      if (last_i) end_o <= 1'b1;
      if (outcome_ready_i) outcome_valid_o <= 1'b0;
      if (over_o) outcome_valid_o <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (run_i) begin
      outcome_q.stop <= stop_i;
      outcome_q.verdict <= stop_i == StopNone ? verdict_i : '0;
      outcome_q.word <= word_i;
      outcome_q.executed <= executed_i;
      outcome_q.output_bytes <= '0;
    end
    if (start_i) outcome_q.function_ <= function_i;
    if (over_o) begin
      outcome_o <= outcome_q;
      outcome_o.output_bytes <= written_i;
    end
  end

endmodule
