// What needs one cycle: integers but for products and quotients, comparisons of everything, and moves.
//
// The result has 0 above its element. Combinational.
module unisono_handler_alu
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
(
  input  op_e        op_i,
  input  element_e   element_i,
  input  logic [3:0] aux_i,
  input  cell_t      a_i,
  input  cell_t      b_i,
  input  cell_t      c_i,  // of select the third operand, of set_high what was there
  output cell_t      result_o
);

  logic [1:0] size;
  logic [6:0] width;
  cell_t bits, a, b, a_signed, b_signed;
  assign size = size_of(element_i);
  assign width = 7'd8 << size;
  assign bits = bits_of(size);
  assign a = a_i & bits;
  assign b = b_i & bits;
  assign a_signed = signed_of(a_i, size);
  assign b_signed = signed_of(b_i, size);

  logic [5:0] shift;
  assign shift = b_i[5:0] & 6'(width - 7'd1);

  // Floating point is sign and magnitude. -0 equals +0.
  logic wide, a_minus, b_minus, unordered, same;
  cell_t a_size, b_size;
  assign wide = element_i == ElementFp64;
  assign a_minus = wide ? a_i[63] : a_i[31];
  assign b_minus = wide ? b_i[63] : b_i[31];
  assign a_size = wide ? {1'b0, a_i[62:0]} : {33'd0, a_i[30:0]};
  assign b_size = wide ? {1'b0, b_i[62:0]} : {33'd0, b_i[30:0]};
  assign unordered = a_size > infinity_of(element_i) || b_size > infinity_of(element_i);
  assign same = a_size == b_size && (a_minus == b_minus || a_size == '0);

  logic less, less_signed, equal, floating;
  assign floating = is_floating(element_i);
  assign less_signed = $signed(a_signed) < $signed(b_signed);
  always_comb begin
    if (!floating) begin
      less = a < b;
      equal = a == b;
    end else begin
      equal = same && !unordered;
      less = !same && !unordered
           && (a_minus != b_minus ? a_minus : a_minus ? a_size > b_size : a_size < b_size);
    end
  end

  function automatic logic chosen(logic [3:0] when, logic is_less, logic is_equal, logic neither);
    return neither ? when[3] : is_less ? when[0] : is_equal ? when[1] : when[2];
  endfunction

  // Zeros above the highest 1, or below the lowest, by one counter: the latter of the mirrored number.
  cell_t mirrored, counted;
  logic [5:0] zeros;
  logic none;
  always_comb begin
    for (int unsigned i = 0; i < CellBits; i++) mirrored[i] = a[63-i];
    counted = op_i == OpTrailingZeros ? mirrored : a << (7'd64 - width);
  end
  unisono_lzc #(
    .Width(CellBits)
  ) u_zeros (
    .word_i (counted),
    .count_o(zeros),
    .zero_o (none)
  );

  logic [6:0] ones;
  cell_t swapped;
  always_comb begin
    ones = '0;
    for (int unsigned i = 0; i < CellBits; i++) ones += 7'(a[i]);
    for (int unsigned i = 0; i < 8; i++) swapped[8*i+:8] = a[8*(7-i)+:8];
  end

  cell_t nan;
  assign nan = special_of(1'b0, '1, element_i);

  always_comb begin
    case (op_i)
      OpMove, OpSplat, OpInsert, OpExtract: result_o = a_i;
      OpSet, OpInfo: result_o = b_i;
      OpSetHigh: result_o = {b_i[31:0], c_i[31:0]};
      OpSelect: result_o = a_i != '0 ? b_i : c_i;
      OpAdd: result_o = (a + b) & bits;
      OpSub: result_o = (a - b) & bits;
      OpAnd: result_o = a & b;
      OpOr: result_o = a | b;
      OpXor: result_o = a ^ b;
      OpShiftLeft: result_o = (a << shift) & bits;
      OpShiftRight: result_o = a >> shift;
      OpShiftSigned: result_o = cell_t'($signed(a_signed) >>> shift) & bits;
      OpMin: result_o = floating && unordered ? nan : floating && equal ? a | b : less ? a : b;
      OpMax: result_o = floating && unordered ? nan : floating && equal ? a & b : less ? b : a;
      OpMinSigned: result_o = less_signed ? a : b;
      OpMaxSigned: result_o = less_signed ? b : a;
      OpCompare: result_o = 64'(chosen(aux_i, less, equal, floating && unordered));
      OpCompareSigned: result_o = 64'(chosen(aux_i, less_signed, a == b, 1'b0));
      OpPopcount: result_o = 64'(ones);
      OpLeadingZeros, OpTrailingZeros: result_o = none ? 64'(width) : 64'(zeros);
      OpSwapBytes: result_o = swapped >> (7'd64 - width);
      OpTruncate: result_o = a;
      OpSignExtend: result_o = signed_of(a_i, size_of(element_e'(aux_i[2:0]))) & bits;
      default: result_o = '0;
    endcase
  end

endmodule
