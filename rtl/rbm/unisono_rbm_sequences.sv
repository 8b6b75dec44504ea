// Which collectives are over: calls of a communicator begin in the order of their sequence, so what is before the next
// one has begun; if it is not active, it is over.
//
// One collective begins at a time. Its sequence counts two cycles later: meanwhile it is active, and what is its own
// matches. When a communicator begins anew, none of its calls are over.
//
// Latency: whether a sequence is before the next is there one cycle after it is asked. Throughput: one per cycle.

module unisono_rbm_sequences
  import unisono_cclo_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [Calls-1:0] active_i,
  // Of a context other fields count elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  call_context_t    contexts_i [Calls],
  // verilator lint_on UNUSEDSIGNAL
  input  logic             begins_valid_i,           // a communicator begins anew
  input  communicator_t    begins_communicator_i,

  input  communicator_t    communicator_i,
  input  logic [31:0]      sequence_i,
  output logic             before_next_o             // one cycle later
);

  logic [Calls-1:0] active_q, starting;
  logic starts_d, starts_q;
  logic [31:0] started_d, started_q;
  communicator_t starter_d, starter_q;
  logic [Communicators-1:0] begun_q;                 // a call of it has begun: next_q counts
  (* ram_style = "distributed" *) logic [31:0] next_q [Communicators];

  always_comb begin
    started_d = '0;
    starter_d = '0;
    for (int unsigned slot = 0; slot < Calls; slot++) begin
      starting[slot] = active_i[slot] && !active_q[slot] && !contexts_i[slot].point_to_point;
      if (starting[slot]) begin
        started_d |= contexts_i[slot].sequence_;
        starter_d |= contexts_i[slot].communicator;
      end
    end
    starts_d = starting != '0;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) active_q <= '0;
    else active_q <= active_i;
  end
  always_ff @(posedge clk_i) begin
    starts_q <= rst_ni && starts_d;
    started_q <= started_d;
    starter_q <= starter_d;
    if (starts_q) next_q[starter_q] <= started_q + 1'b1;
  end
  for (genvar c = 0; c < int'(Communicators); c++) begin : gen_begun
    always_ff @(posedge clk_i) begin
      if (!rst_ni || (begins_valid_i && begins_communicator_i == communicator_t'(c))) begin
        begun_q[c] <= 1'b0;
      end else if (starts_q && starter_q == communicator_t'(c)) begin
        begun_q[c] <= 1'b1;
      end
    end
  end

  logic is_over_q;
  // Sequences wrap around: of two, the one less than half the way behind the other is before it.
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0] ahead;
  // verilator lint_on UNUSEDSIGNAL
  assign ahead = sequence_i - next_q[communicator_i];
  always_ff @(posedge clk_i) is_over_q <= begun_q[communicator_i] && ahead[31];
  assign before_next_o = is_over_q;

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) assert ((starting & (starting - 1'b1)) == '0) else $error("two calls begin at once");
  end
  `endif

endmodule
