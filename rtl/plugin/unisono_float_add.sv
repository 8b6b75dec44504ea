// Sum of two floating-point numbers, of a format chosen word by word: IEEE 754, to nearest even,
// subnormals kept. NaN is the quiet one with sign of the greater operand and no payload.
//
// One datapath serves all formats of `Formats`. Their exponents are never rebiased (both operands
// have the same bias), and their fractions stand to the left; only taking apart, the place of
// rounding and putting together differ. fp16 and bf16 are rounded once, which equals the sum in
// fp32 rounded to them: fp32 has more than 2 p + 2 bits of either, and a sum below its normal range
// is exact.
//
// Latency: 8 cycles. Throughput: one sum per cycle. No back-pressure, no reset: the pipeline holds
// data only.
//
//   1 unpack, compare | 2 swap, align by 16s | 3 align by 1s | 4 add | 5 count zeros
//   6 normalise by 16s | 7 normalise by 1s, look at what is rounded off | 8 round, pack

module unisono_float_add
  import unisono_plugin_pkg::*;
#(
  // Bits of the ports; elements of smaller formats stand to the right.
  parameter int unsigned Width = 64,
  parameter float_mask_t Formats = '1
) (
  input  logic             clk_i,
  input  float_e           format_i,
  input  logic [Width-1:0] a_i,
  input  logic [Width-1:0] b_i,
  output logic [Width-1:0] result_o
);

  localparam int unsigned ExpBits = float_exp_bits(Formats);
  localparam int unsigned SigBits = float_sig_bits(Formats);
  // The lesser operand keeps two bits below the significand, and one that tells whether more was
  // lost.
  localparam int unsigned AlignBits = SigBits + 2;
  // A carry above, and those three below.
  localparam int unsigned SumBits = SigBits + 4;
  localparam int unsigned AlignShiftBits = $clog2(AlignBits + 1);
  localparam int unsigned CountBits = $clog2(SumBits);

  if (Width < (Formats[0] ? 64 : Formats[1] ? 32 : 16)) begin : gen_narrow
    $error("Width is less than an element's");
  end

  typedef struct packed {
    logic               sign;
    logic [ExpBits-1:0] exp;
    logic [SigBits-2:0] frac;
  } number_t;

  // Travels beside the significands.
  typedef struct packed {
    float_e             format;
    logic               sign;
    logic               subtract;
    logic               nan;
    logic               inf;
    logic [ExpBits-1:0] exp;  // of the greater operand; 1 for subnormals
  } side_t;

  function automatic number_t unpack(logic [Width-1:0] raw, float_e format);
    float_t wide;
    wide = float_unpack(64'(raw), format);
    return {wide.sign, wide.exp[ExpBits-1:0], wide.frac[51-:SigBits-1]};
  endfunction

  // Exponents of subnormals are 1, without hidden bit.
  function automatic logic [ExpBits-1:0] effective(logic [ExpBits-1:0] exp);
    return {exp[ExpBits-1:1], exp[0] | (exp == '0)};
  endfunction

  // 1: take apart, compare.
  float_e format;
  number_t a, b;
  assign format = float_limit(format_i, Formats);
  assign a = unpack(a_i, format);
  assign b = unpack(b_i, format);

  logic a_top, b_top, a_frac, b_frac;
  assign a_top = 11'(a.exp) == float_exp_max(format);
  assign b_top = 11'(b.exp) == float_exp_max(format);
  assign a_frac = a.frac != '0;
  assign b_frac = b.frac != '0;

  float_e format_q1;
  number_t a_q1, b_q1;
  logic less_q1, a_top_q1, b_top_q1, a_frac_q1, b_frac_q1;
  logic [ExpBits-1:0] a_minus_b_q1, b_minus_a_q1;
  always_ff @(posedge clk_i) begin
    format_q1 <= format;
    a_q1 <= a;
    b_q1 <= b;
    less_q1 <= {a.exp, a.frac} < {b.exp, b.frac};
    a_minus_b_q1 <= effective(a.exp) - effective(b.exp);
    b_minus_a_q1 <= effective(b.exp) - effective(a.exp);
    a_top_q1 <= a_top;
    b_top_q1 <= b_top;
    a_frac_q1 <= a_frac;
    b_frac_q1 <= b_frac;
  end

  // 2: the greater magnitude stays, the lesser is shifted right.
  number_t great;
  // verilator lint_off UNUSEDSIGNAL
  number_t less;  // its sign is told by `subtract`
  // verilator lint_on UNUSEDSIGNAL
  logic [ExpBits-1:0] distance;
  assign great = less_q1 ? b_q1 : a_q1;
  assign less = less_q1 ? a_q1 : b_q1;
  assign distance = less_q1 ? b_minus_a_q1 : a_minus_b_q1;

  logic [AlignBits-1:0] coarse;
  logic coarse_lost;
  always_comb begin
    logic [AlignBits-1:0] whole;
    whole = {less.exp != '0, less.frac, 2'b0};
    coarse = whole;
    coarse_lost = 1'b0;
    for (int unsigned i = 16; i < (1 << AlignShiftBits); i += 16) begin
      if (32'(distance[AlignShiftBits-1:0]) >> 4 == i / 16) begin
        coarse = whole >> i;
        coarse_lost = (whole & ~({AlignBits{1'b1}} << i)) != '0;
      end
    end
    if (32'(distance) >> AlignShiftBits != '0) begin
      coarse = '0;
      coarse_lost = whole != '0;
    end
  end

  side_t side_q2;
  logic [SigBits-1:0] great_q2;
  logic [AlignBits-1:0] less_q2;
  logic lost_q2;
  logic [3:0] fine_q2;
  always_ff @(posedge clk_i) begin
    side_q2 <= '{
      format: format_q1,
      sign: great.sign,
      subtract: a_q1.sign ^ b_q1.sign,
      nan: (a_top_q1 && a_frac_q1) || (b_top_q1 && b_frac_q1)
        || (a_top_q1 && b_top_q1 && a_q1.sign != b_q1.sign),
      inf: a_top_q1 || b_top_q1,
      exp: effective(great.exp)
    };
    great_q2 <= {great.exp != '0, great.frac};
    less_q2 <= coarse;
    lost_q2 <= coarse_lost;
    fine_q2 <= distance[3:0];
  end

  // 3
  side_t side_q3;
  logic [SigBits-1:0] great_q3;
  logic [AlignBits:0] less_q3;
  always_ff @(posedge clk_i) begin
    side_q3 <= side_q2;
    great_q3 <= great_q2;
    less_q3 <= {less_q2 >> fine_q2, lost_q2 || (less_q2 & ~({AlignBits{1'b1}} << fine_q2)) != '0};
  end

  // 4: the difference is not negative, as the greater magnitude comes first.
  side_t side_q4;
  logic [SumBits-1:0] sum_q4;
  always_ff @(posedge clk_i) begin
    side_q4 <= side_q3;
    sum_q4 <= {1'b0, great_q3, 3'b0} + ({1'b0, less_q3} ^ {SumBits{side_q3.subtract}})
            + SumBits'(side_q3.subtract);
  end

  // 5
  logic [CountBits-1:0] count;
  logic zero;
  unisono_lzc #(
    .Width(SumBits)
  ) u_lzc (
    .word_i (sum_q4),
    .count_o(count),
    .zero_o (zero)
  );

  side_t side_q5;
  logic [SumBits-1:0] sum_q5;
  logic [CountBits-1:0] count_q5;
  logic zero_q5;
  always_ff @(posedge clk_i) begin
    side_q5 <= side_q4;
    sum_q5 <= sum_q4;
    count_q5 <= count;
    zero_q5 <= zero;
  end

  // 6: to the left until the leading bit is at the top, but not beyond the least exponent. The top
  // is the carry's place, one exponent above; so the exponent to be stored is that of the greater
  // operand less the shift, plus the bit at the top, which stage 8 adds.
  logic limited;
  logic [CountBits-1:0] shift;
  assign limited = 32'(side_q5.exp) < 32'(count_q5);
  assign shift = limited ? CountBits'(side_q5.exp) : count_q5;

  side_t side_q6;
  logic [SumBits-1:0] sum_q6;
  logic [3:0] fine_q6;
  always_ff @(posedge clk_i) begin
    side_q6 <= side_q5;
    side_q6.exp <= limited || zero_q5 ? '0 : side_q5.exp - ExpBits'(count_q5);
    side_q6.sign <= side_q5.sign && !(zero_q5 && side_q5.subtract);
    sum_q6 <= sum_q5;
    for (int unsigned i = 16; i < (1 << CountBits); i += 16) begin
      if (32'(shift) >> 4 == i / 16) sum_q6 <= sum_q5 << i;
    end
    fine_q6 <= shift[3:0];
  end

  // 7
  logic [SumBits-1:0] normal;
  assign normal = sum_q6 << fine_q6;

  // Per format: whether its last place grows, as a bit at that place of the significand.
  logic [3:0][SigBits-2:0] increments;
  for (genvar f = 0; f < 4; f++) begin : gen_increment
    if (Formats[f]) begin : gen_format
      localparam int unsigned Last = SumBits - float_sig_bits(float_mask_t'(1 << f));
      always_comb begin
        increments[f] = '0;
        increments[f][Last-4] = side_q6.format == float_e'(f) && normal[Last-1]
                             && (normal[Last] || normal[Last-2:0] != '0);
      end
    end else begin : gen_no_format
      assign increments[f] = '0;
    end
  end

  // verilator lint_off UNUSEDSIGNAL
  side_t side_q7;  // `subtract` has done its work
  // verilator lint_on UNUSEDSIGNAL
  logic [SigBits-1:0] sig_q7;
  logic [SigBits-2:0] increment_q7;
  logic overflow_q7;
  always_ff @(posedge clk_i) begin
    side_q7 <= side_q6;
    sig_q7 <= normal[SumBits-1:4];
    increment_q7 <= increments[0] | increments[1] | increments[2] | increments[3];
    // One less than the largest exponent, and the leading bit adds one. A carry of rounding into
    // the largest exponent leaves a zero fraction: infinity by itself.
    overflow_q7 <= 11'(side_q6.exp) == (float_exp_max(side_q6.format) ^ 11'd1) && normal[SumBits-1];
  end

  // 8: a carry runs from the fraction into the exponent.
  logic [ExpBits+SigBits-2:0] rounded;
  float_t packed_sum;
  assign rounded = {side_q7.exp, increment_q7} + (ExpBits + SigBits - 1)'(sig_q7);
  always_comb begin
    packed_sum.sign = side_q7.sign;
    packed_sum.exp = 11'(rounded[SigBits-1+:ExpBits]);
    packed_sum.frac = 52'(rounded[SigBits-2:0]) << (53 - SigBits);
    if (side_q7.nan || side_q7.inf || overflow_q7) begin
      packed_sum.exp = '1;
      packed_sum.frac = {side_q7.nan, 51'b0};
    end
  end

  always_ff @(posedge clk_i) result_o <= Width'(float_pack(packed_sum, side_q7.format));

endmodule
