// Eight bytes of unisono_plugin_alu: integer sums, comparisons of everything, bitwise and logical
// functions of parts of 1, 2, 4 or 8 bytes.
//
// One carry chain of 72 bits adds or subtracts all parts: a bit between any two bytes passes the
// carry on within a part, and gives the next part its own. Sums are its result; min, max, minloc
// and maxloc only take its carries. Floating point is compared as sign and magnitude: as integers,
// but in reverse if both are negative, which also puts -0 below +0.
//
// Latency: 3 cycles. Throughput: one chunk per cycle. No reset: the pipeline holds data only.
//
//   1 row of adders and bitwise functions; NaN, zero, equality
//   2 what each part takes; two neighbours agree on pairs of 16 bytes
//   3 take it

module unisono_alu_chunk
  import unisono_plugin_pkg::*;
(
  input  logic         clk_i,
  input  alu_control_t control_i,
  input  logic [63:0]  a_i,
  input  logic [63:0]  b_i,
  // Stage 2, if pair16: of the value's chunk, whether op0 is taken for its value, and whether its
  // index decides; of the index's chunk, whether op0's is the lower one.
  output logic         value_first_o,
  output logic         value_tie_o,
  output logic         index_less_o,
  // Stage 2, if pair16: op0 is taken.
  input  logic         pair_first_i,
  output logic [63:0]  result_o
);

  // 1: byte k of the operands stands at bit 9 k of the chain, a joint above it.
  logic [71:0] chain_a, chain_b, chain;
  logic [7:0] joined;
  always_comb begin
    for (int unsigned k = 0; k < 8; k++) begin
      // Byte k is not the last of its part.
      joined[k] = k % 2 == 0 ? control_i.size != 2'd0
                : k % 4 == 1 ? control_i.size[1]
                : k == 3 ? control_i.size == 2'd3 : 1'b0;
      chain_a[9*k+:8] = a_i[8*k+:8];
      chain_b[9*k+:8] = b_i[8*k+:8] ^ {8{control_i.compare}};
      // Within a part the carry runs through 1 + 0. Between two, it ends, and the next part is
      // given 1 + 1 for a difference (a + ~b + 1), 0 + 0 for a sum.
      chain_a[9*k+8] = joined[k] || control_i.compare;
      chain_b[9*k+8] = !joined[k] && control_i.compare;
    end
  end
  assign chain = chain_a + chain_b + 72'(control_i.compare);

  // Per 16 bits: the element of floating point that holds them is NaN.
  function automatic logic [3:0] nan(logic [63:0] raw, float_e format);
    logic [3:0] result;
    for (int unsigned h = 0; h < 4; h++) begin
      automatic logic [14:0] half = raw[16*h+:15];
      automatic logic [30:0] word = raw[32*(h/2)+:31];
      case (format)
        FloatFp64: result[h] = raw[62:52] == '1 && raw[51:0] != '0;
        FloatFp32: result[h] = word[30:23] == '1 && word[22:0] != '0;
        FloatFp16: result[h] = half[14:10] == '1 && half[9:0] != '0;
        default: result[h] = half[14:7] == '1 && half[6:0] != '0;
      endcase
    end
    return result;
  endfunction

  // The first operand where they are compared, the result elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  alu_control_t control_q1;  // but for the row, which is done
  // verilator lint_on UNUSEDSIGNAL
  logic [63:0] first_q1, second_q1;
  logic [7:0] not_less_q1, equal_q1, a_true_q1, b_true_q1;
  logic [3:0] a_nan_q1, b_nan_q1;
  always_ff @(posedge clk_i) begin
    control_q1 <= control_i;
    second_q1 <= b_i;
    for (int unsigned k = 0; k < 8; k++) begin
      case (control_i.row)
        AluRowSum: first_q1[8*k+:8] <= chain[9*k+:8];
        AluRowAnd: first_q1[8*k+:8] <= a_i[8*k+:8] & b_i[8*k+:8];
        AluRowOr: first_q1[8*k+:8] <= a_i[8*k+:8] | b_i[8*k+:8];
        AluRowXor: first_q1[8*k+:8] <= a_i[8*k+:8] ^ b_i[8*k+:8];
        AluRowOp0: first_q1[8*k+:8] <= a_i[8*k+:8];
        AluRowOp1: first_q1[8*k+:8] <= b_i[8*k+:8];
        default: first_q1[8*k+:8] <= '0;
      endcase
      // At the top of a part the joint adds two equal bits: what is left there is the carry.
      not_less_q1[k] <= chain[9*k+8];
      equal_q1[k] <= a_i[8*k+:8] == b_i[8*k+:8];
      a_true_q1[k] <= a_i[8*k+:8] != '0;
      b_true_q1[k] <= b_i[8*k+:8] != '0;
    end
    a_nan_q1 <= nan(a_i, control_i.format)
              & {{2{control_i.is_float[1]}}, {2{control_i.is_float[0]}}};
    b_nan_q1 <= nan(b_i, control_i.format)
              & {{2{control_i.is_float[1]}}, {2{control_i.is_float[0]}}};
  end

  // 2
  // verilator lint_off UNUSEDSIGNAL
  alu_control_t control;
  // verilator lint_on UNUSEDSIGNAL
  assign control = control_q1;

  // As if byte k were the top of a part: whether op0's part is less.
  logic [7:0] less;
  always_comb begin
    for (int unsigned k = 0; k < 8; k++) begin
      automatic logic a_sign = first_q1[8*k+7];
      automatic logic b_sign = second_q1[8*k+7];
      if (control.is_signed && a_sign != b_sign) less[k] = a_sign;
      else less[k] = !not_less_q1[k] ^ (control.is_float[k/4] && a_sign);
    end
  end

  // As if byte k were the top of a part: whether op1's part is taken. NaN comes before numbers.
  logic [7:0] take;
  always_comb begin
    for (int unsigned k = 0; k < 8; k++) begin
      take[k] = !a_nan_q1[k/2] && (b_nan_q1[k/2] || less[k] == control.greater);
    end
  end

  // A pair's value stands below its index: in bytes 0 to 3 of 8, or in the even one of two chunks.
  logic tie8, first8;
  assign tie8 = a_nan_q1[0] == b_nan_q1[0] && (a_nan_q1[0] || equal_q1[3:0] == '1);
  assign first8 = tie8 ? less[7] : !take[3];
  assign value_tie_o = a_nan_q1[3] == b_nan_q1[3] && (a_nan_q1[3] || equal_q1 == '1);
  assign value_first_o = !take[7];
  assign index_less_o = control.size == 2'd3 ? less[7] : less[3];

  logic [63:0] first_q2, second_q2;
  logic [7:0] take_q2, truth_q2;
  // A NaN that is taken becomes quiet: bit 9 of fp16, 6 of bf16 and of the upper half of fp32, 3 of
  // the uppermost quarter of fp64.
  logic [3:0] quiet9_q2, quiet6_q2;
  logic quiet3_q2, pad_q2;
  always_ff @(posedge clk_i) begin
    first_q2 <= first_q1;
    second_q2 <= second_q1;
    pad_q2 <= control.pad;
    quiet3_q2 <= 1'b0;
    for (int unsigned k = 0; k < 8; k++) begin
      automatic logic [2:0] top = 3'(k) | 3'((4'd1 << control.size) - 4'd1);
      automatic logic a_true, b_true;
      if (control.pair16) take_q2[k] <= !pair_first_i;
      else if (control.pair8) take_q2[k] <= !first8;
      else take_q2[k] <= control.compare && take[top];

      // Truth of a part is written by its lowest byte.
      case (control.size)
        2'd0: {a_true, b_true} = {a_true_q1[k], b_true_q1[k]};
        2'd1: {a_true, b_true} = {|a_true_q1[k/2*2+:2], |b_true_q1[k/2*2+:2]};
        2'd2: {a_true, b_true} = {|a_true_q1[k/4*4+:4], |b_true_q1[k/4*4+:4]};
        default: {a_true, b_true} = {|a_true_q1, |b_true_q1};
      endcase
      case (control.logical)
        2'd1: truth_q2[k] <= a_true && b_true;
        2'd2: truth_q2[k] <= a_true || b_true;
        2'd3: truth_q2[k] <= a_true != b_true;
        default: truth_q2[k] <= 1'b0;
      endcase
      if ((k & ((1 << control.size) - 1)) != 0) truth_q2[k] <= 1'b0;
    end
    for (int unsigned h = 0; h < 4; h++) begin
      automatic logic quiet = control.compare && !control.pair8 && !control.pair16
                           && (a_nan_q1[h] || b_nan_q1[h]);
      quiet9_q2[h] <= quiet && control.format == FloatFp16;
      quiet6_q2[h] <= quiet && (control.format == FloatBf16
                                || (control.format == FloatFp32 && h % 2 == 1));
      if (h == 3) quiet3_q2 <= quiet && control.format == FloatFp64;
    end
  end

  // 3
  always_ff @(posedge clk_i) begin
    for (int unsigned k = 0; k < 8; k++) begin
      result_o[8*k+:8] <= take_q2[k] ? second_q2[8*k+:8] : first_q2[8*k+:8];
      if (truth_q2[k]) result_o[8*k] <= 1'b1;
    end
    for (int unsigned h = 0; h < 4; h++) begin
      if (quiet9_q2[h]) result_o[16*h+9] <= 1'b1;
      if (quiet6_q2[h]) result_o[16*h+6] <= 1'b1;
    end
    if (quiet3_q2) result_o[51] <= 1'b1;
    if (pad_q2) result_o[63:32] <= '0;
  end

endmodule
