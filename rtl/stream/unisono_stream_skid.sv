// Register slice of a packet stream: both directions are registered.
//
// Latency: 1 cycle. Throughput: 1 word per cycle. No combinational path from any input to any
// output, so it may stand anywhere a path is too long. Two words of storage.

module unisono_stream_skid #(
  parameter int unsigned DataBytes = 64,
  // Width of the side-band that travels with each word (destination, identifiers). At least 1.
  parameter int unsigned UserBits  = 1
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  input  logic                     in_valid_i,
  output logic                     in_ready_o,
  input  logic [DataBytes*8-1:0]   in_data_i,
  input  logic [DataBytes-1:0]     in_keep_i,
  input  logic                     in_last_i,
  input  logic [UserBits-1:0]      in_user_i,

  output logic                     out_valid_o,
  input  logic                     out_ready_i,
  output logic [DataBytes*8-1:0]   out_data_o,
  output logic [DataBytes-1:0]     out_keep_o,
  output logic                     out_last_o,
  output logic [UserBits-1:0]      out_user_o
);

  localparam int unsigned WordBits = DataBytes * 8 + DataBytes + 1 + UserBits;

  unisono_skid #(
    .Width(WordBits)
  ) u_skid (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .in_data_i  ({in_user_i, in_last_i, in_keep_i, in_data_i}),
    .out_valid_o,
    .out_ready_i,
    .out_data_o ({out_user_o, out_last_o, out_keep_o, out_data_o})
  );

endmodule
