// The columns of a machine: operands of an instruction, and who computes with them.
//
// A scalar is in column 0. Latency: that of the work (`latency_of`), divisions but until `divided_o`. Throughput: a beat
// per cycle.
module unisono_handler_columns
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned   Columns = 16,
  parameter element_mask_t Elements = '1
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  // verilator lint_off UNUSEDSIGNAL
  input  instruction_t             word_i,  // its registers have been read
  // verilator lint_on UNUSEDSIGNAL
  input  work_e                    work_i,
  input  infos_t                   info_i,
  input  cell_t [3:0]              scalars_i,  // rd, rc, rb, ra
  input  cell_t [2:0][Columns-1:0] vectors_i,  // third, rb, ra
  input  logic                     issue_i,
  output logic                     by_zero_o,  // it would divide an integer by 0
  output logic                     divided_o,
  output cell_t [Columns-1:0]      third_o,  // what a store writes
  output cell_t [Columns-1:0]      results_o,

  // Adders that work for tables.
  input  logic [Columns-1:0]       lent_i,
  input  element_e                 lent_element_i,
  input  cell_t [Columns-1:0]      lent_a_i,
  input  cell_t [Columns-1:0]      lent_b_i,
  output cell_t [Columns-1:0]      sums_o
);

  cell_t sa, sb, sc, sd, number;
  cell_t [Columns-1:0] a, b, c;
  assign {sd, sc, sb, sa} = scalars_i;
  assign number = {{32{word_i.imm[31]}}, word_i.imm};
  assign third_o = c;
  always_comb begin
    for (int unsigned l = 0; l < Columns; l++) begin
      a[l] = !word_i.vector_ || word_i.op == OpSplat || word_i.op == OpInsert ? sa : vectors_i[0][l];
      b[l] = word_i.vector_ ? vectors_i[1][l] : sb;
      if (word_i.immediate || word_i.op == OpSet || word_i.op == OpSetHigh) b[l] = number;
      if (word_i.op == OpInfo) b[l] = word_i.imm[2:0] < 3'd6 ? 64'(info_i[word_i.imm[2:0]]) : '0;
      c[l] = word_i.vector_ ? vectors_i[2][l] : word_i.op == OpSelect ? sc : sd;
    end
  end
  for (genvar l = 0; l < int'(Columns); l++) begin : gen_column
    logic column_divided;
    unisono_handler_lane #(
      .Elements(Elements)
    ) u_lane (
      .clk_i,
      .rst_ni,
      .issue_i       (issue_i && (l == 0 || word_i.vector_)),
      .work_i,
      .op_i          (word_i.op),
      .element_i     (word_i.element),
      .aux_i         (word_i.aux),
      .a_i           (a[l]),
      .b_i           (b[l]),
      .c_i           (c[l]),
      .divided_o     (column_divided),
      .result_o      (results_o[l]),
      .lent_i        (lent_i[l]),
      .lent_element_i,
      .lent_a_i      (lent_a_i[l]),
      .lent_b_i      (lent_b_i[l]),
      .sum_o         (sums_o[l])
    );
    if (l == 0) begin : gen_first
      assign divided_o = column_divided;
    end else begin : gen_other
      logic unused_column;
      assign unused_column = column_divided;
    end
  end

  always_comb begin
    by_zero_o = 1'b0;
    for (int unsigned l = 0; l < Columns; l++) begin
      if ((l == 0 || word_i.vector_) && (b[l] & bits_of(size_of(word_i.element))) == '0) begin
        by_zero_o = word_i.op != OpDiv;
      end
    end
  end

endmodule
