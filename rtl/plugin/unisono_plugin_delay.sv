// Delays a value by a constant number of cycles. No reset and no enable, so that it maps to shift
// registers.
//
// Latency: Cycles (0 is a wire). Throughput: one value per cycle.

module unisono_plugin_delay #(
  parameter int unsigned Width = 1,
  parameter int unsigned Cycles = 1
) (
  // verilator lint_off UNUSEDSIGNAL
  input  logic             clk_i,  // of no use to a wire
  // verilator lint_on UNUSEDSIGNAL
  input  logic [Width-1:0] d_i,
  output logic [Width-1:0] q_o
);

  if (Cycles == 0) begin : gen_wire
    assign q_o = d_i;
  end else begin : gen_stages
    logic [Cycles-1:0][Width-1:0] stage_q;
    always_ff @(posedge clk_i) begin
      stage_q[0] <= d_i;
      for (int unsigned i = 1; i < Cycles; i++) stage_q[i] <= stage_q[i-1];
    end
    assign q_o = stage_q[Cycles-1];
  end

endmodule
