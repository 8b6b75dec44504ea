// A clock that stands still where nothing would happen. In simulation only: what it clocks is then not evaluated, and
// so costs nothing. For synthesis it is a wire. So the enable must not change what happens, which is the duty of who
// instantiates it: registers behind it, clocked in a cycle without enable, must have no effect that can be seen.
//
// Latency: none. The enable counts as it is before the rising edge.

module unisono_clock_gate (
  input  logic clk_i,
  input  logic enable_i,
  output logic clk_o
);

`ifndef SYNTHESIS
  // The latch keeps the enable over the half in which the clock is high: what the edge changes makes no second edge.
  logic enable;
  always_latch begin
    if (!clk_i) enable = enable_i;
  end
  assign clk_o = clk_i && enable;
`else
  logic unused;
  assign unused = enable_i;
  assign clk_o = clk_i;
`endif

endmodule
