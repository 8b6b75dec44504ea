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
  // Registers of its own instead of concurrent assertions: those sample every signal at every
  // evaluation, which for wide words took a sixth of a simulation's time. Here a channel that
  // nobody blocks costs nothing.
  logic held_q;
  logic [Width-1:0] word_q;
  always_ff @(posedge clk_i) begin
    held_q <= rst_ni && valid_i && !ready_i;
    if (held_q || (valid_i && !ready_i)) begin
      automatic logic [Width-1:0] word = data_i;
      word_q <= word;
      if (rst_ni && held_q) begin
        assert (valid_i) else $error("%m: valid fell before ready");
        assert (!valid_i || word == word_q)
          else $error("%m: an offered word changed before it was taken");
      end
    end
  end
`else
  logic unused;
  assign unused = ^{clk_i, rst_ni, valid_i, ready_i, data_i};
`endif

endmodule
