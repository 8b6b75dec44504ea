// Leading zeros of a word, counted by a tree of 2:1 steps. Combinational.
//
// `count_o` is Width if the word is zero and Width is no power of two, otherwise Width - 1;
// `zero_o` tells.

module unisono_lzc #(
  parameter int unsigned Width = 64,
  localparam int unsigned Levels = $clog2(Width)
) (
  input  logic [ Width-1:0] word_i,
  output logic [Levels-1:0] count_o,
  output logic              zero_o
);

  localparam int unsigned Padded = 1 << Levels;

  // The word stands at the top, ones below it: a zero word's leading one is the first of them.
  logic [Padded-1:0] leaves;
  if (Padded == Width) begin : gen_exact
    assign leaves = word_i;
  end else begin : gen_padded
    assign leaves = {word_i, {(Padded - Width) {1'b1}}};
  end

  // Level l has Padded >> l nodes; node i covers the leaves [i << l +: 1 << l].
  for (genvar l = 0; l <= Levels; l++) begin : gen_level
    localparam int unsigned Nodes = Padded >> l;
    // verilator lint_off UNUSEDSIGNAL
    logic [Nodes-1:0] any;  // the last level's is not looked at
    // verilator lint_on UNUSEDSIGNAL
    logic [Nodes-1:0][Levels-1:0] zeros;
    if (l == 0) begin : gen_leaf
      assign any = leaves;
      assign zeros = '0;
    end else begin : gen_node
      for (genvar i = 0; i < Nodes; i++) begin : gen_each
        assign any[i] = |gen_level[l-1].any[2*i+:2];
        assign zeros[i] = gen_level[l-1].any[2*i+1] ? gen_level[l-1].zeros[2*i+1]
                        : gen_level[l-1].zeros[2*i] | (Levels'(1) << (l - 1));
      end
    end
  end

  assign count_o = gen_level[Levels].zeros[0];
  assign zero_o = word_i == '0;

endmodule
