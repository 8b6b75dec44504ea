// Quotients and remainders of integers, and quotients of floating point: a bit per cycle, of both by the same rows.
//
// Latency: from `start_i` to the cycle in which `done_o` is set, 3 cycles and a bit of the quotient each: 8, 16, 32 or
// 64 of integers, 26 of fp32, 55 of fp64. The result stays until the next start. One division at a time. The divisor
// of integers must not be 0.
module unisono_handler_divide
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter element_mask_t Elements = '1
) (
  input  logic     clk_i,
  input  logic     rst_ni,
  input  logic     start_i,
  input  op_e      op_i,
  input  element_e element_i,
  input  cell_t    a_i,
  input  cell_t    b_i,
  output logic     done_o,  // for one cycle
  output cell_t    result_o
);

  localparam bit Floats = Elements[7:4] != '0;

  // Integers as their magnitudes.
  logic is_signed, a_minus, b_minus;
  logic [1:0] size;
  cell_t a_extended, b_extended, a_size, b_size;
  assign is_signed = op_i == OpDivSigned || op_i == OpRemSigned;
  assign size = size_of(element_i);
  assign a_extended = is_signed ? signed_of(a_i, size) : a_i & bits_of(size);
  assign b_extended = is_signed ? signed_of(b_i, size) : b_i & bits_of(size);
  assign a_minus = is_signed && a_extended[63];
  assign b_minus = is_signed && b_extended[63];
  assign a_size = a_minus ? -a_extended : a_extended;
  assign b_size = b_minus ? -b_extended : b_extended;

  typedef struct packed {
    logic               floating;
    logic               remainder;
    logic               minus;  // the result is negative
    element_e           element;
    logic               special;  // it has been known from the beginning
    cell_t              result;  // which is this
    logic signed [13:0] exponent;
  } side_t;

  // Significands of floating point with their highest bits at the top, and what needs no division.
  logic floating;
  logic special;
  cell_t special_result;
  logic signed [13:0] exponent;
  logic [52:0] a_significand, b_significand;
  logic sign;
  if (Floats) begin : gen_floats
    apart_t a, b;
    logic [5:0] a_zeros, b_zeros;
    logic a_zero, b_zero, nan;
    logic signed [13:0] a_exponent, b_exponent;
    assign a = apart_of(a_i, element_i);
    assign b = apart_of(b_i, element_i);
    unisono_lzc #(
      .Width(53)
    ) u_a_zeros (
      .word_i ({a.exponent != '0, a.fraction}),
      .count_o(a_zeros),
      .zero_o (a_zero)
    );
    unisono_lzc #(
      .Width(53)
    ) u_b_zeros (
      .word_i ({b.exponent != '0, b.fraction}),
      .count_o(b_zeros),
      .zero_o (b_zero)
    );
    assign floating = op_i == OpDiv;
    assign sign = a.sign ^ b.sign;
    assign a_significand = {a.exponent != '0, a.fraction} << a_zeros;
    assign b_significand = {b.exponent != '0, b.fraction} << b_zeros;
    assign a_exponent = (a.exponent == '0 ? 14'sd1 : $signed(14'(a.exponent))) - $signed(14'(a_zeros));
    assign b_exponent = (b.exponent == '0 ? 14'sd1 : $signed(14'(b.exponent))) - $signed(14'(b_zeros));
    assign exponent = a_exponent - b_exponent;
    assign nan = (a.top && a.fraction != '0) || (b.top && b.fraction != '0) || (a.top && b.top) || (a_zero && b_zero);
    assign special = a.top || b.top || a_zero || b_zero;
    always_comb begin
      if (nan) special_result = special_of(sign, '1, element_i);
      else if (a.top || b_zero) special_result = special_of(sign, '0, element_i);
      else special_result = element_i == ElementFp64 ? {sign, 63'd0} : {32'd0, sign, 31'd0};
    end
  end else begin : gen_no_floats
    assign floating = 1'b0;
    assign sign = 1'b0;
    assign a_significand = '0;
    assign b_significand = '0;
    assign exponent = '0;
    assign special = 1'b0;
    assign special_result = '0;
  end

  // What is left of the dividend stands in `rest_q`, bits that are still to come in `next_q`.
  logic busy_q, ready_q;
  logic [6:0] left_q;
  side_t side_q;
  logic [63:0] rest_q, next_q, divisor_q, quotient_q;
  logic [64:0] shifted, less;
  assign shifted = {rest_q, next_q[63]};
  assign less = shifted - {1'b0, divisor_q};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      ready_q <= 1'b0;
      done_o <= 1'b0;
    end else begin
      ready_q <= busy_q && left_q == 7'd1;
      done_o <= ready_q;
      if (start_i) busy_q <= 1'b1;
      else if (left_q == 7'd1) busy_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      side_q <= '{
        floating: floating,
        remainder: op_i == OpRemUnsigned || op_i == OpRemSigned,
        minus: floating ? sign : op_i == OpRemSigned ? a_minus : a_minus != b_minus,
        element: element_i,
        special: floating && special,
        result: special_result,
        exponent: exponent
      };
      left_q <= floating ? (element_i == ElementFp64 ? 7'd55 : 7'd26) : 7'd8 << size;
      quotient_q <= '0;
      // Of floating point the first bit is that of 2^0: both are shifted once before they are compared.
      rest_q <= floating ? {11'd0, a_significand} : '0;
      next_q <= floating ? '0 : a_size << (7'd64 - (7'd8 << size));
      divisor_q <= floating ? {10'd0, b_significand, 1'b0} : b_size;
    end else if (busy_q) begin
      left_q <= left_q - 7'd1;
      // A rest is less than the divisor, so that no carry is lost.
      rest_q <= less[64] ? shifted[63:0] : less[63:0];
      next_q <= next_q << 1;
      quotient_q <= {quotient_q[62:0], !less[64]};
    end
  end

  // The quotient's highest bit is that of 2^0, or the one below it.
  cell_t whole, float;
  logic [63:0] placed;
  assign whole = side_q.remainder ? rest_q : quotient_q;
  assign placed = side_q.element == ElementFp64 ? {quotient_q[54:0], 9'd0} : {quotient_q[25:0], 38'd0};
  assign float = rounded('{side_q.minus, side_q.exponent - (placed[63] ? 14'sd0 : 14'sd1),
                           placed[63] ? placed : placed << 1, rest_q != '0}, side_q.element);
  always_ff @(posedge clk_i) begin
    if (ready_q) begin
      if (side_q.special) result_o <= side_q.result;
      else if (side_q.floating) result_o <= float;
      else result_o <= (side_q.minus ? -whole : whole) & bits_of(size_of(side_q.element));
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    assert (!rst_ni || !start_i || (!busy_q && !ready_q)) else $error("%m: a division begins before the last ended");
  end
`endif

endmodule
