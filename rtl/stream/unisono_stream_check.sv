// Simulation only: asserts the rules of a packet stream. In addition to the handshake:
// - keep is contiguous from byte 0, and all ones except in a packet's last word;
// - keep is never empty, unless AllowEmpty;
// - user is constant over a packet.

module unisono_stream_check #(
  parameter int unsigned DataBytes  = 64,
  parameter int unsigned UserBits   = 1,
  parameter bit          AllowEmpty = 1'b0
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input logic                   valid_i,
  input logic                   ready_i,
  input logic [DataBytes*8-1:0] data_i,
  input logic [DataBytes-1:0]   keep_i,
  input logic                   last_i,
  input logic [UserBits-1:0]    user_i
);

`ifndef SYNTHESIS
  unisono_handshake_check #(
    .Width(DataBytes * 8 + DataBytes + 1 + UserBits)
  ) u_handshake (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_i,
    .data_i({user_i, last_i, keep_i, data_i})
  );

  logic                open_q;
  logic [UserBits-1:0] user_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q <= 1'b0;
    end else if (valid_i && ready_i) begin
      open_q <= !last_i;
      user_q <= user_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && valid_i) begin
      assert (last_i || (&keep_i)) else $error("%m: keep is not full before a packet's end");
      assert ((keep_i & (keep_i + DataBytes'(1))) == '0)
        else $error("%m: keep is not contiguous from byte 0");
      assert (AllowEmpty || keep_i[0]) else $error("%m: a word without bytes");
      assert (!open_q || user_i == user_q) else $error("%m: user changed within a packet");
    end
  end
`else
  logic unused;
  assign unused = ^{clk_i, rst_ni, valid_i, ready_i, data_i, keep_i, last_i, user_i, AllowEmpty};
`endif

endmodule
