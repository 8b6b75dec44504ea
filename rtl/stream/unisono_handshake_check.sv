// Simulation only: asserts the rule of every valid/ready channel. An offered word stays, unchanged,
// until it is taken. No outputs; a module instantiates it on its inputs (then it accuses the
// sender) and on its outputs (then itself).

module unisono_handshake_check #(
  parameter int unsigned Width = 8
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             valid_i,
  input logic             ready_i,
  input logic [Width-1:0] data_i
);

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni)
    valid_i && !ready_i |=> valid_i)
    else $error("%m: valid fell before ready");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
    valid_i && !ready_i |=> $stable(data_i))
    else $error("%m: an offered word changed before it was taken");
`else
  logic unused;
  assign unused = ^{clk_i, rst_ni, valid_i, ready_i, data_i};
`endif

endmodule
