// Conversions between integers and floating point, and between formats of it, rounded once.
//
// Each number is taken apart, made to have its highest bit at the top, and rounded to what is asked for.
//
// Latency: 3 cycles. Throughput: one per cycle. No back-pressure, no reset: the pipeline holds data only.
//
//   1 take apart | 2 count zeros, shift | 3 round, put together
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
  logic [5:0] zeros;
  logic unused_none;
  unisono_lzc #(
    .Width(CellBits)
  ) u_zeros (
    .word_i (wide_q1.significand),
    .count_o(zeros),
    .zero_o (unused_none)
  );
  side_t side_q2;
  wide_t wide_q2;
  always_ff @(posedge clk_i) begin
    side_q2 <= side_q1;
    wide_q2 <= wide_q1;
    wide_q2.significand <= wide_q1.significand << zeros;
    wide_q2.exponent <= wide_q1.exponent - $signed(14'(zeros));
  end

  // 3: integers toward 0, and the nearest that there is.
  cell_t bits, most, whole, integer_;
  logic beyond;
  assign bits = bits_of(size_of(side_q2.to));
  assign most = side_q2.to_signed ? bits >> 1 : bits;
  assign whole = wide_q2.exponent < 0 ? '0 : wide_q2.significand >> (6'd63 - wide_q2.exponent[5:0]);
  // A signed number's least is one more than its most.
  assign beyond = wide_q2.significand != '0
               && (wide_q2.exponent > 14'sd63 || whole > most + 64'(side_q2.to_signed && wide_q2.sign));
  always_comb begin
    if (side_q2.top && side_q2.fraction != '0) integer_ = '0;
    else if (wide_q2.sign && !side_q2.to_signed) integer_ = '0;
    else if (side_q2.top || beyond) integer_ = wide_q2.sign ? (most + 64'd1) & bits : most;
    else integer_ = (wide_q2.sign ? -whole : whole) & bits;
  end
  always_ff @(posedge clk_i) begin
    if (side_q2.to_integer) result_o <= integer_;
    else if (side_q2.top) result_o <= special_of(wide_q2.sign, side_q2.fraction, side_q2.to);
    else result_o <= rounded(wide_q2, side_q2.to);
  end

endmodule
