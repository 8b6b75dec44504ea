// Errors end their call, the first of each: what may go wrong says so in the cycle in which it does, and each slot
// keeps the first. They are told one at a time.
//
// Of several causes of one slot in one cycle the one of the lowest number counts. An error that comes while an earlier
// one of its slot still waits is told in its stead. Nothing of a slot that is cleared is told.
//
// Latency: 1 cycle. Throughput: an error per cycle.

module unisono_core_failures
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_core_pkg::*;
#(
  parameter int unsigned Causes = 10
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  cause_t [Causes-1:0] causes_i,
  input  logic [Calls-1:0]    clearing_i,

  output logic                fail_valid_o,   // for one cycle
  output slot_t               fail_slot_o,
  output error_code_e         fail_code_o
);

  logic [Calls-1:0] failed_q, fail_one;
  error_code_e failed_code_q [Calls];
  logic fail_any;

  unisono_lowest_one #(.Width(Calls)) u_fail (
    .bits_i(failed_q), .any_o(fail_any), .index_o(fail_slot_o), .one_o(fail_one)
  );
  assign fail_valid_o = fail_any && !clearing_i[fail_slot_o];
  assign fail_code_o = failed_code_q[fail_slot_o];

  for (genvar s = 0; s < int'(Calls); s++) begin : gen_failed
    logic fails;
    error_code_e code;
    always_comb begin
      fails = 1'b0;
      code = ErrorCodeInternal;
      for (int unsigned c = 0; c < Causes; c++) begin
        if (causes_i[c].valid && causes_i[c].slot == slot_t'(s) && !fails) begin
          fails = 1'b1;
          code = causes_i[c].code;
        end
      end
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clearing_i[s]) failed_q[s] <= 1'b0;
      else failed_q[s] <= fails || (failed_q[s] && !fail_one[s]);
      if (fails) failed_code_q[s] <= code;
    end
  end

endmodule
