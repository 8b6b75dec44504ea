// Product of two floating-point numbers, of a format chosen word by word, or of two integers: lower
// half, whatever their size and sign. IEEE 754, to nearest even, subnormals kept.
//
// Significands stand to the left, as in unisono_float_add, and all formats share the multiplier and
// what follows. bf16 is rounded once, core/arithmetic.hpp rounds to fp32 before; both agree. The
// first rounding is inexact only below the normal range, and a change would need 16 or more bits of
// the product, next to one another, that are all ones, or a one followed by 15 zeros and another
// one; but two significands of 8 bits have a product of at most 255 * 255 < 2^16 - 1. For fp16 it
// is exact.
//
// Latency: multiply_latency(Width). Throughput: one product per cycle. No back-pressure, no reset:
// the pipeline holds data only.
//
//   1 unpack | multiply | 2 count zeros | 3 shift by 16s
//   4 shift by 1s, look at what is rounded off | 5 round, pack

module unisono_multiply
  import unisono_plugin_pkg::*;
#(
  // Bits of the ports; smaller elements stand to the right.
  parameter int unsigned Width = 64,
  parameter float_mask_t Formats = '1,
  parameter bit Integers = 1'b1
) (
  input  logic             clk_i,
  // Of no interest for integers.
  input  float_e           format_i,
  input  logic             integer_i,
  input  logic [Width-1:0] a_i,
  input  logic [Width-1:0] b_i,
  output logic [Width-1:0] result_o
);

  localparam int unsigned ExpBits = float_exp_bits(Formats);
  localparam int unsigned SigBits = float_sig_bits(Formats);
  localparam int unsigned ArrayBits = Integers ? Width : SigBits;
  localparam int unsigned ArrayLatency = multiply_array_latency(Width);
  // The significand and a bit below it, and how far to the right the product goes to get there: by
  // SigBits if it has no leading zeros. One more than all of its bits leaves nothing.
  localparam int unsigned WindowBits = SigBits + 1;
  // Small windows are followed by fewer than the 15 bits that the last step may shift in.
  localparam int unsigned CoarseBits = WindowBits + 15;
  localparam int unsigned WholeBits = SigBits < 15 ? CoarseBits : 2 * SigBits + 1;
  localparam int unsigned MostShift = 2 * SigBits + 1;
  localparam int unsigned ShiftBits = $clog2(MostShift + 1);
  localparam int unsigned CountBits = $clog2(WindowBits + 1);
  // Exponents of products: signed, twice as large, and a bias less.
  localparam int unsigned WideBits = ExpBits + 2;

  if (Width < (Formats[0] ? 64 : Formats[1] ? 32 : 16)) begin : gen_bad
    $error("Width is less than an element's");
  end

  typedef struct packed {
    logic               sign;
    logic [ExpBits-1:0] exp;
    logic [SigBits-2:0] frac;
  } number_t;

  function automatic number_t unpack(logic [Width-1:0] raw, float_e format);
    float_t wide;
    wide = float_unpack(64'(raw), format);
    return {wide.sign, wide.exp[ExpBits-1:0], wide.frac[51-:SigBits-1]};
  endfunction

  // What travels beside the product.
  typedef struct packed {
    float_e format;
    logic   plain;
    logic   sign;
    logic   nan;
    logic   inf;
    logic   zero;
  } side_t;

  // 1: take apart.
  float_e format;
  logic plain;
  number_t a, b;
  assign format = float_limit(format_i, Formats);
  assign plain = Integers && (integer_i || Formats == '0);
  assign a = unpack(a_i, format);
  assign b = unpack(b_i, format);

  // Integers as they are, if there are any; significands to the left.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [ArrayBits-1:0] operand(logic whole, logic [Width-1:0] raw,
                                                   logic [SigBits-1:0] sig);
    // verilator lint_on UNUSEDSIGNAL
    return whole ? ArrayBits'(raw) : ArrayBits'(sig) << (ArrayBits - SigBits);
  endfunction

  // Of each operand: the exponent is the largest, is zero; the fraction is not zero.
  logic a_top_q1, b_top_q1, a_low_q1, b_low_q1, a_frac_q1, b_frac_q1;
  logic plain_q1, sign_q1;
  float_e format_q1;
  logic [ArrayBits-1:0] a_q1, b_q1;
  logic [ExpBits:0] exp_q1;
  always_ff @(posedge clk_i) begin
    a_top_q1 <= 11'(a.exp) == float_exp_max(format);
    b_top_q1 <= 11'(b.exp) == float_exp_max(format);
    a_low_q1 <= a.exp == '0;
    b_low_q1 <= b.exp == '0;
    a_frac_q1 <= a.frac != '0;
    b_frac_q1 <= b.frac != '0;
    plain_q1 <= plain;
    sign_q1 <= a.sign ^ b.sign;
    format_q1 <= format;
    a_q1 <= operand(plain, a_i, {a.exp != '0, a.frac});
    b_q1 <= operand(plain, b_i, {b.exp != '0, b.frac});
    // Exponents of subnormals are 1.
    exp_q1 <= (ExpBits + 1)'({a.exp[ExpBits-1:1], a.exp[0] | (a.exp == '0)})
            + (ExpBits + 1)'({b.exp[ExpBits-1:1], b.exp[0] | (b.exp == '0)});
  end

  // A narrower array is faster than one for integers would be.
  logic [ArrayBits-1:0] a_late, b_late;
  unisono_plugin_delay #(
    .Width (2 * ArrayBits),
    .Cycles(ArrayLatency - multiply_array_latency(ArrayBits))
  ) u_late (
    .clk_i,
    .d_i({a_q1, b_q1}),
    .q_o({a_late, b_late})
  );

  // Without integers its lower end is not needed, without formats its upper end.
  // verilator lint_off UNUSEDSIGNAL
  logic [2*ArrayBits-1:0] product;
  // verilator lint_on UNUSEDSIGNAL
  unisono_multiply_array #(
    .Width(ArrayBits)
  ) u_array (
    .clk_i,
    .a_i      (a_late),
    .b_i      (b_late),
    .product_o(product)
  );

  side_t side_q1, side;
  logic a_zero_q1, b_zero_q1;
  assign a_zero_q1 = a_low_q1 && !a_frac_q1;
  assign b_zero_q1 = b_low_q1 && !b_frac_q1;
  assign side_q1 = '{
    format: format_q1,
    plain: plain_q1,
    sign: sign_q1,
    nan: (a_top_q1 && a_frac_q1) || (b_top_q1 && b_frac_q1)
      || (a_top_q1 && b_zero_q1) || (b_top_q1 && a_zero_q1),
    inf: a_top_q1 || b_top_q1,
    zero: a_zero_q1 || b_zero_q1
  };

  logic [ExpBits:0] exp_sum;
  unisono_plugin_delay #(
    .Width ($bits(side_t) + ExpBits + 1),
    .Cycles(ArrayLatency)
  ) u_side (
    .clk_i,
    .d_i({side_q1, exp_q1}),
    .q_o({side, exp_sum})
  );

  // 2: `right_q2` brings the leading bit to the top of the window, `least_q2` the least exponent.
  // The top of the product, at 2^1, has the exponent exp_sum - bias + 1; so the exponent to be
  // stored is `exp_q2` less the zeros, plus the bit at the top, which stage 5 adds.
  logic [CountBits-1:0] count;
  logic unused_none;
  unisono_lzc #(
    .Width(WindowBits)
  ) u_lzc (
    .word_i (product[2*ArrayBits-1-:WindowBits]),
    .count_o(count),
    .zero_o (unused_none)
  );

  function automatic logic [WideBits-1:0] exp_max(float_e float);
    return WideBits'(float_exp_max(float));
  endfunction

  // The bias is half the largest exponent.
  logic [WideBits-1:0] exp, least;
  assign exp = WideBits'(exp_sum) - (exp_max(side.format) >> 1);
  assign least = WideBits'(SigBits) - exp;

  side_t side_q2;
  logic [2*SigBits-1:0] product_q2;
  logic [CountBits-1:0] count_q2;
  logic [WideBits-1:0] exp_q2;
  logic [ShiftBits-1:0] right_q2, least_q2;
  always_ff @(posedge clk_i) begin
    side_q2 <= side;
    product_q2 <= product[2*ArrayBits-1-:2*SigBits];
    count_q2 <= count;
    exp_q2 <= exp;
    // A window of zeros belongs to two subnormals, or zero: `least` decides.
    right_q2 <= 32'(count) > SigBits ? '0 : ShiftBits'(SigBits) - ShiftBits'(count);
    if (least[WideBits-1]) least_q2 <= '0;
    else if (least > WideBits'(MostShift)) least_q2 <= ShiftBits'(MostShift);
    else least_q2 <= least[ShiftBits-1:0];
  end

  // 3
  logic limited;
  logic [ShiftBits-1:0] shift;
  assign limited = least_q2 > right_q2;
  assign shift = limited ? least_q2 : right_q2;

  side_t side_q3;
  logic [CoarseBits-1:0] coarse_q3;
  logic lost_q3;
  logic [3:0] fine_q3;
  logic [WideBits-1:0] exp_q3;
  always_ff @(posedge clk_i) begin
    automatic logic [WholeBits-1:0] whole = WholeBits'({product_q2, 1'b0});
    side_q3 <= side_q2;
    fine_q3 <= shift[3:0];
    exp_q3 <= limited || side_q2.zero ? '0 : exp_q2 - WideBits'(count_q2);
    coarse_q3 <= whole[CoarseBits-1:0];
    lost_q3 <= 1'b0;
    for (int unsigned i = 16; i < (1 << ShiftBits); i += 16) begin
      if (32'(shift) >> 4 == i / 16) begin
        coarse_q3 <= CoarseBits'(whole >> i);
        lost_q3 <= (whole & ~({WholeBits{1'b1}} << i)) != '0;
      end
    end
  end

  // 4
  logic [WindowBits-1:0] window;
  logic lost;
  assign window = WindowBits'(coarse_q3 >> fine_q3);
  assign lost = lost_q3 || (coarse_q3[14:0] & ~(15'h7fff << fine_q3)) != '0;

  // verilator lint_off UNUSEDSIGNAL
  logic [SigBits+1:0] normal;  // the lower end is of use to formats only
  // verilator lint_on UNUSEDSIGNAL
  assign normal = {window, lost};

  // Per format: whether its last place grows, as a bit at that place of the significand.
  logic [3:0][SigBits-2:0] increments;
  for (genvar f = 0; f < 4; f++) begin : gen_increment
    if (Formats[f]) begin : gen_format
      localparam int unsigned Last = SigBits + 2 - float_sig_bits(float_mask_t'(1 << f));
      always_comb begin
        increments[f] = '0;
        increments[f][Last-2] = side_q3.format == float_e'(f) && normal[Last-1]
                             && (normal[Last] || normal[Last-2:0] != '0);
      end
    end else begin : gen_no_format
      assign increments[f] = '0;
    end
  end

  // Neither `plain` (if there are no integers) nor `zero` is needed further on.
  // verilator lint_off UNUSEDSIGNAL
  side_t side_q4;
  // verilator lint_on UNUSEDSIGNAL
  logic [SigBits-1:0] sig_q4;
  logic [SigBits-2:0] increment_q4;
  logic [ExpBits-1:0] exp_q4;
  logic overflow_q4;
  always_ff @(posedge clk_i) begin
    side_q4 <= side_q3;
    sig_q4 <= normal[SigBits+1:2];
    increment_q4 <= increments[0] | increments[1] | increments[2] | increments[3];
    exp_q4 <= exp_q3[ExpBits-1:0];
    // It is never negative here. A carry of rounding into the largest exponent leaves a zero
    // fraction: infinity by itself.
    overflow_q4 <= exp_q3 >= exp_max(side_q3.format) - WideBits'(1);
  end

  // 5: a carry runs from the fraction into the exponent.
  logic [ExpBits+SigBits-2:0] rounded;
  float_t packed_product;
  assign rounded = {exp_q4, increment_q4} + (ExpBits + SigBits - 1)'(sig_q4);
  always_comb begin
    packed_product.sign = side_q4.sign;
    packed_product.exp = 11'(rounded[SigBits-1+:ExpBits]);
    packed_product.frac = 52'(rounded[SigBits-2:0]) << (53 - SigBits);
    if (side_q4.nan || side_q4.inf || overflow_q4) begin
      packed_product.exp = '1;
      packed_product.frac = {side_q4.nan, 51'b0};
    end
  end

  if (Integers) begin : gen_integer
    logic [Width-1:0] lower;
    unisono_plugin_delay #(
      .Width (Width),
      .Cycles(3)
    ) u_lower (
      .clk_i,
      .d_i(product[Width-1:0]),
      .q_o(lower)
    );
    always_ff @(posedge clk_i) begin
      result_o <= side_q4.plain ? lower : Width'(float_pack(packed_product, side_q4.format));
    end
  end else begin : gen_no_integer
    always_ff @(posedge clk_i) result_o <= Width'(float_pack(packed_product, side_q4.format));
  end

endmodule
