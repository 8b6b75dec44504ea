// Sends each packet of a stream to all outputs that its mask names.
//
// The mask is taken from a packet's first word and holds for the packet. A word stays until every
// named output has taken it, each at its own time; so the outputs are never more than one word
// apart. A packet with an empty mask is thrown away.
//
// Latency: 1 cycle. Throughput: 1 word per cycle while all named outputs take one per cycle.
// Outputs share one data register; their out_valid_o is one gate behind registers. in_ready_o
// comes from a register.

module unisono_stream_broadcast #(
  parameter int unsigned Outputs   = 2,
  parameter int unsigned DataBytes = 64,
  parameter int unsigned UserBits  = 1
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  input  logic                                in_valid_i,
  output logic                                in_ready_o,
  input  logic [DataBytes*8-1:0]              in_data_i,
  input  logic [DataBytes-1:0]                in_keep_i,
  input  logic                                in_last_i,
  input  logic [UserBits-1:0]                 in_user_i,
  input  logic [Outputs-1:0]                  in_mask_i,

  output logic [Outputs-1:0]                  out_valid_o,
  input  logic [Outputs-1:0]                  out_ready_i,
  output logic [Outputs-1:0][DataBytes*8-1:0] out_data_o,
  output logic [Outputs-1:0][DataBytes-1:0]   out_keep_o,
  output logic [Outputs-1:0]                  out_last_o,
  output logic [Outputs-1:0][UserBits-1:0]    out_user_o
);

  localparam int unsigned WordBits = DataBytes * 8 + DataBytes + 1 + UserBits;

  // Within a packet: where it goes.
  logic               locked_q;
  logic [Outputs-1:0] locked_mask_q, mask;

  assign mask = locked_q ? locked_mask_q : in_mask_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      locked_q <= 1'b0;
    end else if (in_valid_i && in_ready_o) begin
      locked_q <= !in_last_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!locked_q) begin
      locked_mask_q <= in_mask_i;
    end
  end

  logic                word_valid, word_ready;
  logic [Outputs-1:0]  word_mask;
  logic [WordBits-1:0] word;

  unisono_skid #(
    .Width(Outputs + WordBits)
  ) u_in (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .in_data_i  ({mask, in_user_i, in_last_i, in_keep_i, in_data_i}),
    .out_valid_o(word_valid),
    .out_ready_i(word_ready),
    .out_data_o ({word_mask, word})
  );

  // Outputs that have taken the word on offer.
  logic [Outputs-1:0] done_q;

  assign word_ready  = (word_mask & ~done_q & ~out_ready_i) == '0;
  assign out_valid_o = word_valid ? word_mask & ~done_q : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q <= '0;
    end else if (word_valid) begin
      done_q <= word_ready ? '0 : done_q | out_ready_i;
    end
  end

  for (genvar i = 0; i < Outputs; i++) begin : gen_out
    assign {out_user_o[i], out_last_o[i], out_keep_o[i], out_data_o[i]} = word;
  end

`ifndef SYNTHESIS
  unisono_stream_check #(
    .DataBytes (DataBytes),
    .UserBits  (UserBits + Outputs),
    .AllowEmpty(1'b1)
  ) u_check_in (
    .clk_i,
    .rst_ni,
    .valid_i(in_valid_i),
    .ready_i(in_ready_o),
    .data_i (in_data_i),
    .keep_i (in_keep_i),
    .last_i (in_last_i),
    .user_i ({in_user_i, in_mask_i})
  );
`endif

endmodule
