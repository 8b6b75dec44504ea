// What one lane computes: all instructions of numbers.
//
// An operation begins with `issue_i`, for whose result who issues it counts `latency_of(work_i)` cycles; 0 is the same
// cycle. One operation per cycle may begin, if they are of one kind. Divisions are one at a time; `divided_o` is set
// in the cycle of their result. No reset but of the divider: pipelines hold data only.
module unisono_handler_lane
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter element_mask_t Elements = '1
) (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       issue_i,
  input  work_e      work_i,  // until the result has come
  input  op_e        op_i,
  input  element_e   element_i,
  input  logic [3:0] aux_i,
  input  cell_t      a_i,
  input  cell_t      b_i,
  input  cell_t      c_i,
  output logic       divided_o,
  output cell_t      result_o,
  // The adder may be lent to unisono_handler_table.
  input  logic       lent_i,
  input  element_e   lent_element_i,
  input  cell_t      lent_a_i,
  input  cell_t      lent_b_i,
  output cell_t      sum_o  // 8 cycles later
);

  localparam bit Floats = Elements[7:4] != '0;
  // As unisono_plugin_pkg numbers formats: fp16 and bf16 are added in fp32.
  localparam logic [3:0] Formats = {2'b0, Elements[4] | Elements[6] | Elements[7], Elements[5]};

  cell_t plain, quotient;
  unisono_handler_alu u_alu (
    .op_i,
    .element_i,
    .aux_i,
    .a_i,
    .b_i,
    .c_i,
    .result_o(plain)
  );
  unisono_handler_divide #(
    .Elements(Elements)
  ) u_divide (
    .clk_i,
    .rst_ni,
    .start_i (issue_i && work_i == WorkDivide),
    .op_i,
    .element_i,
    .a_i,
    .b_i,
    .done_o  (divided_o),
    .result_o(quotient)
  );

  unisono_plugin_pkg::float_e kind;
  assign kind = element_i == ElementFp64 ? unisono_plugin_pkg::FloatFp64 : unisono_plugin_pkg::FloatFp32;

  cell_t product;
  unisono_multiply #(
    .Width   (CellBits),
    .Formats (Formats),
    .Integers(1'b1)
  ) u_multiply (
    .clk_i,
    .format_i (kind),
    .integer_i(!is_floating(element_i)),
    .a_i,
    .b_i,
    .result_o (product)
  );
  cell_t product_mask;
  assign product_mask = bits_of(size_of(element_i));

  cell_t sum, converted;
  if (Floats) begin : gen_floats
    cell_t a, b;
    unisono_plugin_pkg::float_e added;
    // a - b = a + (-b).
    always_comb begin
      a = lent_i ? lent_a_i : a_i;
      b = lent_i ? lent_b_i : b_i;
      added = kind;
      if (lent_i) begin
        added = lent_element_i == ElementFp64 ? unisono_plugin_pkg::FloatFp64 : unisono_plugin_pkg::FloatFp32;
      end else if (op_i == OpSub) begin
        if (element_i == ElementFp64) b[63] = !b_i[63];
        else b[31] = !b_i[31];
      end
    end
    unisono_float_add #(
      .Width  (CellBits),
      .Formats(Formats)
    ) u_add (
      .clk_i,
      .format_i(added),
      .a_i     (a),
      .b_i     (b),
      .result_o(sum)
    );
    unisono_handler_convert u_convert (
      .clk_i,
      .op_i,
      .to_i    (element_i),
      .from_i  (element_e'(aux_i[2:0])),
      .a_i,
      .result_o(converted)
    );
  end else begin : gen_no_floats
    logic unused_lent;
    assign unused_lent = ^{lent_i, lent_element_i, lent_a_i, lent_b_i};
    assign sum = '0;
    assign converted = '0;
  end

  assign sum_o = sum;
  always_comb begin
    case (work_i)
      // The element stays the same until the result has come.
      WorkMultiply: result_o = product & product_mask;
      WorkSum: result_o = sum;
      WorkConvert: result_o = converted;
      WorkDivide: result_o = quotient;
      default: result_o = plain;
    endcase
  end

endmodule
