// A number of fp32 as fp16 or bf16: to nearest, ties to even; NaN becomes quiet and keeps sign and upper payload; bit for
// bit narrow_fp16 and narrow_bf16 of core/arithmetic.hpp. Beside it comes the number itself.
//
// Latency: 3 steps. Each stage takes what is before it when its step says so, so idle stages hold still.
// Throughput: a number per step. No reset: it holds data only.

module unisono_half_narrow
  import unisono_plugin_pkg::*;
(
  input  logic        clk_i,
  input  logic [2:0]  step_i,    // of each stage
  input  logic        brain_i,   // with step_i[2]: bf16, else fp16
  input  logic [31:0] number_i,
  output logic [15:0] half_o,
  output logic [31:0] number_o
);

  // A number on its way to fp16: its significand is shifted right until its exponent is one of
  // fp16.
  typedef struct packed {
    logic        sign;
    // less the one that the hidden bit adds
    logic [4:0]  exp;
    logic        nan;
    logic        inf;
    logic [23:0] sig;
    logic        lost;
    logic [3:0]  right;
    logic [31:0] raw;
  } lane_t;

  function automatic lane_t begin_fp16(logic [31:0] raw);
    lane_t lane;
    logic [7:0] exp, below;
    exp = raw[30:23];
    below = 8'd113 - exp;
    lane.sign = raw[31];
    lane.nan = exp == 8'hff && raw[22:0] != '0;
    // 2^16 and more; what rounds up to it gets there by its carry.
    lane.inf = exp >= 8'd143;
    lane.sig = {exp != '0, raw[22:0]};
    lane.lost = 1'b0;
    lane.raw = raw;
    if (exp >= 8'd113) begin
      lane.exp = 5'(exp - 8'd113);
      lane.right = 4'd0;
    end else begin
      // Shifted by 13 or more, it is less than half of the least subnormal: only not zero.
      lane.exp = 5'd0;
      lane.right = below > 8'd13 ? 4'd13 : below[3:0];
    end
    return lane;
  endfunction

  function automatic lane_t shift_fp16(lane_t lane_in);
    lane_t lane;
    lane = lane_in;
    lane.sig = lane_in.sig >> lane_in.right;
    lane.lost = (lane_in.sig & ~(24'hffffff << lane_in.right)) != '0;
    return lane;
  endfunction

  // The shift has been done.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [15:0] end_fp16(lane_t lane);
  // verilator lint_on UNUSEDSIGNAL
    logic round;
    logic [14:0] rounded;
    round = lane.sig[12] && (lane.sig[13] || lane.sig[11:0] != '0 || lane.lost);
    rounded = {lane.exp, 10'b0} + 15'(lane.sig[23:13]) + 15'(round);
    if (lane.nan) return {lane.sign, 6'h3f, lane.raw[21:13]};
    if (lane.inf) return {lane.sign, 5'h1f, 10'b0};
    return {lane.sign, rounded};
  endfunction

  lane_t lane_q0, lane_q1;
  always_ff @(posedge clk_i) begin
    if (step_i[0]) lane_q0 <= begin_fp16(number_i);
    if (step_i[1]) lane_q1 <= shift_fp16(lane_q0);
    if (step_i[2]) begin
      half_o   <= brain_i ? narrow_bf16(lane_q1.raw) : end_fp16(lane_q1);
      number_o <= lane_q1.raw;
    end
  end

endmodule
