// Quotients and remainders of integers, and quotients of floating point: a bit per cycle, of both by the same rows.
//
// Latency: from `start_i` to the cycle in which `done_o` is set, 5 cycles, of floating point 8, and one for each bit of
// the quotient: 8, 16, 32 or 64 of integers, 26 of fp32, 55 of fp64. The result stays until the next start. One division at a time. The divisor
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
    logic     floating;
    logic     remainder;
    logic     minus;  // the result is negative
    element_e element;
  } side_t;

  // 1: numbers of floating point are taken apart.
  logic floating, sign, a_top, b_top;
  logic [52:0] a_significand, b_significand;
  logic signed [13:0] a_exponent, b_exponent;
  if (Floats) begin : gen_floats
    apart_t a, b;
    assign a = apart_of(a_i, element_i);
    assign b = apart_of(b_i, element_i);
    assign a_significand = {a.exponent != '0, a.fraction};
    assign b_significand = {b.exponent != '0, b.fraction};
    assign floating = op_i == OpDiv;
    assign sign = a.sign ^ b.sign;
    assign a_top = a.top;
    assign b_top = b.top;
    assign a_exponent = a.exponent == '0 ? 14'sd1 : $signed(14'(a.exponent));
    assign b_exponent = b.exponent == '0 ? 14'sd1 : $signed(14'(b.exponent));
  end else begin : gen_no_floats
    assign {floating, sign, a_top, b_top} = '0;
    assign {a_significand, b_significand, a_exponent, b_exponent} = '0;
  end

  side_t side_q;
  logic started_q1, started_q2;
  logic a_top_q, b_top_q;
  cell_t a_size_q, b_size_q;
  logic signed [13:0] a_exponent_q, b_exponent_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {started_q2, started_q1} <= '0;
    else {started_q2, started_q1} <= {started_q1, start_i};
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      side_q <= '{
        floating: floating,
        remainder: op_i == OpRemUnsigned || op_i == OpRemSigned,
        minus: floating ? sign : op_i == OpRemSigned ? a_minus : a_minus != b_minus,
        element: element_i
      };
      a_top_q <= a_top;
      b_top_q <= b_top;
      a_exponent_q <= a_exponent;
      b_exponent_q <= b_exponent;
      a_size_q <= floating ? 64'(a_significand) : a_size;
      b_size_q <= floating ? 64'(b_significand) : b_size;
    end
  end

  // 2: where their highest bits are, and what needs no division.
  logic [5:0] a_zeros_q, b_zeros_q;
  logic special_q;
  cell_t special_result_q;
  logic signed [13:0] exponent_q1;
  if (Floats) begin : gen_places
    logic [5:0] a_zeros, b_zeros;
    logic a_zero, b_zero, a_nan, b_nan;
    cell_t special_result;
    unisono_lzc #(
      .Width(53)
    ) u_a_zeros (
      .word_i (a_size_q[52:0]),
      .count_o(a_zeros),
      .zero_o (a_zero)
    );
    unisono_lzc #(
      .Width(53)
    ) u_b_zeros (
      .word_i (b_size_q[52:0]),
      .count_o(b_zeros),
      .zero_o (b_zero)
    );
    assign a_nan = a_top_q && a_size_q[51:0] != '0;
    assign b_nan = b_top_q && b_size_q[51:0] != '0;
    always_comb begin
      if (a_nan || b_nan || (a_top_q && b_top_q) || (a_zero && b_zero)) begin
        special_result = special_of(side_q.minus, '1, side_q.element);
      end else if (a_top_q || b_zero) begin
        special_result = special_of(side_q.minus, '0, side_q.element);
      end else begin
        special_result = side_q.element == ElementFp64 ? {side_q.minus, 63'd0} : {32'd0, side_q.minus, 31'd0};
      end
    end
    always_ff @(posedge clk_i) begin
      if (started_q1) begin
        a_zeros_q <= a_zeros;
        b_zeros_q <= b_zeros;
        special_q <= side_q.floating && (a_top_q || b_top_q || a_zero || b_zero);
        special_result_q <= special_result;
        exponent_q1 <= a_exponent_q - b_exponent_q;
      end
    end
  end else begin : gen_no_places
    logic unused_tops;
    assign unused_tops = ^{a_top_q, b_top_q, a_exponent_q, b_exponent_q};
    assign {special_q, special_result_q, a_zeros_q, b_zeros_q, exponent_q1} = '0;
  end

  // 3: they go to the top.
  logic signed [13:0] exponent;
  logic [52:0] a_place, b_place;
  logic [6:0] left;
  assign a_place = a_size_q[52:0] << a_zeros_q;
  assign b_place = b_size_q[52:0] << b_zeros_q;
  assign exponent = exponent_q1 + (14'(b_zeros_q) - 14'(a_zeros_q));
  assign left = side_q.floating ? (side_q.element == ElementFp64 ? 7'd55 : 7'd26)
                                : 7'd8 << size_of(side_q.element);

  // What is left of the dividend stands in `rest_q`, bits that are still to come in `next_q`.
  logic busy_q, ready_q;
  logic [6:0] left_q;
  logic signed [13:0] exponent_q;
  logic [63:0] rest_q, next_q, divisor_q, quotient_q;
  logic [64:0] shifted, less;
  assign shifted = {rest_q, next_q[63]};
  assign less = shifted - {1'b0, divisor_q};
  logic [2:0] rounds_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      ready_q <= 1'b0;
      rounds_q <= '0;
      done_o <= 1'b0;
    end else begin
      ready_q <= busy_q && left_q == 7'd1;
      rounds_q <= {rounds_q[1:0], ready_q && side_q.floating};
      done_o <= side_q.floating ? rounds_q[2] : ready_q;
      if (started_q2) busy_q <= 1'b1;
      else if (left_q == 7'd1) busy_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (started_q2) begin
      exponent_q <= exponent;
      left_q <= left;
      quotient_q <= '0;
      // Of floating point the first bit is that of 2^0: both are shifted once before they are compared.
      rest_q <= side_q.floating ? {11'd0, a_place} : '0;
      next_q <= side_q.floating ? '0 : a_size_q << (7'd64 - left);
      divisor_q <= side_q.floating ? {10'd0, b_place, 1'b0} : b_size_q;
    end else if (busy_q) begin
      left_q <= left_q - 7'd1;
      // A rest is less than the divisor, so that no carry is lost.
      rest_q <= less[64] ? shifted[63:0] : less[63:0];
      next_q <= next_q << 1;
      quotient_q <= {quotient_q[62:0], !less[64]};
    end
  end

  // The quotient's highest bit is that of 2^0, or the one below it.
  cell_t whole, whole_q, float;
  assign whole = side_q.remainder ? rest_q : quotient_q;
  always_ff @(posedge clk_i) begin
    if (ready_q) whole_q <= (side_q.minus ? -whole : whole) & bits_of(size_of(side_q.element));
  end
  if (Floats) begin : gen_round
    logic [63:0] placed;
    wide_t wide_q;
    assign placed = side_q.element == ElementFp64 ? {quotient_q[54:0], 9'd0} : {quotient_q[25:0], 38'd0};
    always_ff @(posedge clk_i) begin
      wide_q <= '{side_q.minus, exponent_q - (placed[63] ? 14'sd0 : 14'sd1), placed[63] ? placed : placed << 1,
                  rest_q != '0};
    end
    unisono_handler_round u_round (
      .clk_i,
      .value_i  (wide_q),
      .element_i(side_q.element),
      .result_o (float)
    );
  end else begin : gen_no_round
    logic unused_exponent;
    assign unused_exponent = ^exponent_q;
    assign float = '0;
  end
  assign result_o = special_q ? special_result_q : side_q.floating ? float : whole_q;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    assert (!rst_ni || !start_i || (!busy_q && !ready_q && {started_q1, started_q2, rounds_q} == '0))
    else $error("%m: a division begins before the last ended");
  end
`endif

endmodule
