// Proof of unisono_lowest_one: a bit is chosen exactly if there is one, and none below it is set.

module unisono_lowest_one_proof #(
  parameter int unsigned Width = 64,
  localparam int unsigned IndexWidth = $clog2(Width)
) (
  input logic             clk_i,
  input logic [Width-1:0] bits_i
);

  logic any;
  logic [IndexWidth-1:0] index;
  logic [Width-1:0] one;

  unisono_lowest_one #(
    .Width(Width)
  ) u_dut (
    .bits_i,
    .any_o  (any),
    .index_o(index),
    .one_o  (one)
  );

  always_ff @(posedge clk_i) begin
    any_is_right: assert (any == (bits_i != '0));
    one_is_lowest: assert (one == (bits_i & (~bits_i + 1'b1)));
    if (any) index_names_it: assert (one == Width'(1) << index);
    if (!any) index_of_none: assert (index == '0);
  end

endmodule
