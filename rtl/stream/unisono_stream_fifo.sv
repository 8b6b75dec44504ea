// Queue of the words of a packet stream. Packets may leave before they are complete; see
// unisono_stream_packet_fifo for one that holds them back.
//
// Holds exactly Depth words. Latency: 1 cycle with LUTRAM (Depth up to 64), 3 with block RAM.
// Throughput: 1 word per cycle. in_ready_o comes from a register.

module unisono_stream_fifo #(
  parameter int unsigned DataBytes  = 64,
  parameter int unsigned UserBits   = 1,
  parameter int unsigned Depth      = 32,
  parameter bit          BlockRam   = Depth > 64,
  localparam int unsigned CountBits = $clog2(Depth + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   in_valid_i,
  output logic                   in_ready_o,
  input  logic [DataBytes*8-1:0] in_data_i,
  input  logic [DataBytes-1:0]   in_keep_i,
  input  logic                   in_last_i,
  input  logic [UserBits-1:0]    in_user_i,

  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [DataBytes*8-1:0] out_data_o,
  output logic [DataBytes-1:0]   out_keep_o,
  output logic                   out_last_o,
  output logic [UserBits-1:0]    out_user_o,

  // Words inside, including the one on offer.
  output logic [CountBits-1:0]   count_o
);

  unisono_fifo #(
    .Width   (DataBytes * 8 + DataBytes + 1 + UserBits),
    .Depth   (Depth),
    .BlockRam(BlockRam)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .in_data_i  ({in_user_i, in_last_i, in_keep_i, in_data_i}),
    .out_valid_o,
    .out_ready_i,
    .out_data_o ({out_user_o, out_last_o, out_keep_o, out_data_o}),
    .count_o
  );

endmodule
