// Conversions between integers and floating point, and between formats of it, rounded once.
//
// Each number is taken apart, made to have its highest bit at the top, and rounded to what is asked for.
//
// Latency: 6 cycles. Throughput: one per cycle. No back-pressure, no reset: the pipeline holds data only.
//
//   1 take apart | 2 count zeros | 3 shift | 4 to 6 round (unisono_handler_round), or shift, compare and choose an integer
module unisono_handler_convert
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
(
  input  logic     clk_i,
  input  op_e      op_i,
  input  element_e to_i,
  input  element_e from_i,
  input  cell_t    a_i,
  output cell_t    result_o
);

  // What travels beside the number.
  typedef struct packed {
    logic     to_integer;
    logic     to_signed;
    element_e to;
    logic     top;  // infinity or NaN
    logic [51:0] fraction;  // of these
  } side_t;

  // 1
  logic from_integer;
  cell_t extended;
  apart_t apart;
  side_t side, side_q1;
  wide_t wide, wide_q1;
  assign from_integer = op_i == OpFromUnsigned || op_i == OpFromSigned;
  assign extended = op_i == OpFromSigned ? signed_of(a_i, size_of(from_i)) : a_i & bits_of(size_of(from_i));
  assign apart = apart_of(a_i, from_i);
  always_comb begin
    side = '{
      to_integer: op_i == OpToUnsigned || op_i == OpToSigned,
      to_signed: op_i == OpToSigned,
      to: to_i,
      top: apart.top && !from_integer,
      fraction: apart.fraction
    };
    wide.lost = 1'b0;
    if (from_integer) begin
      wide.sign = op_i == OpFromSigned && extended[63];
      wide.exponent = 14'sd63;
      wide.significand = wide.sign ? -extended : extended;
    end else begin
      wide.sign = apart.sign;
      wide.exponent = (apart.exponent == '0 ? 14'sd1 : $signed(14'(apart.exponent))) - bias_of(from_i);
      wide.significand = {apart.exponent != '0, apart.fraction, 11'd0};
    end
  end
  always_ff @(posedge clk_i) begin
    side_q1 <= side;
    wide_q1 <= wide;
  end

  // 2
  logic [5:0] zeros, zeros_q2;
  logic unused_none;
  unisono_lzc #(
    .Width(CellBits)
  ) u_zeros (
    .word_i (wide_q1.significand),
    .count_o(zeros),
    .zero_o (unused_none)
  );
  side_t side_q2, side_q3;
  wide_t wide_q2, wide_q3;
  always_ff @(posedge clk_i) begin
    side_q2 <= side_q1;
    wide_q2 <= wide_q1;
    zeros_q2 <= zeros;
  end

  // 3
  always_ff @(posedge clk_i) begin
    side_q3 <= side_q2;
    wide_q3 <= wide_q2;
    wide_q3.significand <= wide_q2.significand << zeros_q2;
    wide_q3.exponent <= wide_q2.exponent - $signed(14'(zeros_q2));
  end

  // 4 to 6: floating point.
  cell_t real_;
  unisono_handler_round u_round (
    .clk_i,
    .value_i  (wide_q3),
    .element_i(side_q3.to),
    .result_o (real_)
  );

  // 4: integers toward 0.
  side_t side_q4, side_q5;
  logic sign_q4, sign_q5, beyond_q4, beyond_q5;
  cell_t whole, whole_q4;
  assign whole = wide_q3.exponent < 0 ? '0 : wide_q3.significand >> (6'd63 - wide_q3.exponent[5:0]);
  always_ff @(posedge clk_i) begin
    side_q4 <= side_q3;
    sign_q4 <= wide_q3.sign;
    beyond_q4 <= wide_q3.significand[63] && wide_q3.exponent > 14'sd63;
    whole_q4 <= whole;
  end

  // 5: a signed number's least is one more than its most.
  cell_t bits, most, signed_q5, most_q5;
  assign bits = bits_of(size_of(side_q4.to));
  assign most = side_q4.to_signed ? bits >> 1 : bits;
  always_ff @(posedge clk_i) begin
    side_q5 <= side_q4;
    sign_q5 <= sign_q4;
    beyond_q5 <= beyond_q4 || whole_q4 > most + 64'(side_q4.to_signed && sign_q4);
    signed_q5 <= (sign_q4 ? -whole_q4 : whole_q4) & bits;
    most_q5 <= sign_q4 ? (most + 64'd1) & bits : most;
  end

  // 6: the nearest that there is; and what is not rounded.
  logic rounds_q6;
  cell_t other_q6;
  always_ff @(posedge clk_i) begin
    rounds_q6 <= !side_q5.to_integer && !side_q5.top;
    if (!side_q5.to_integer) other_q6 <= special_of(sign_q5, side_q5.fraction, side_q5.to);
    else if (side_q5.top && side_q5.fraction != '0) other_q6 <= '0;
    else if (sign_q5 && !side_q5.to_signed) other_q6 <= '0;
    else other_q6 <= side_q5.top || beyond_q5 ? most_q5 : signed_q5;
  end
  assign result_o = rounds_q6 ? real_ : other_q6;

endmodule
