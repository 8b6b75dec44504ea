// Packet switch: every input reaches every output, a packet at a time, routed by its destination.
//
// Each input has a demultiplexer, each output a round-robin arbiter. Packets of one input to one
// output stay in order. A packet that waits for its output stops those behind it at its input, and
// holds nothing else: so the switch itself adds no cycle of waiting to those around it.
// A packet whose destination names no output is thrown away (stray_o, one bit per input).
//
// Latency: 2 cycles. Throughput: 1 word per cycle at each output and at each input, also with
// packets of one word. All outputs are registered.

module unisono_stream_switch #(
  parameter int unsigned Inputs      = 4,
  parameter int unsigned Outputs     = 4,
  parameter int unsigned DataBytes   = 64,
  parameter int unsigned UserBits    = 1,
  parameter int unsigned DestBits    = Outputs > 1 ? $clog2(Outputs) : 1,
  localparam int unsigned SourceBits = Inputs > 1 ? $clog2(Inputs) : 1
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  input  logic [Inputs-1:0]                   in_valid_i,
  output logic [Inputs-1:0]                   in_ready_o,
  input  logic [Inputs-1:0][DataBytes*8-1:0]  in_data_i,
  input  logic [Inputs-1:0][DataBytes-1:0]    in_keep_i,
  input  logic [Inputs-1:0]                   in_last_i,
  input  logic [Inputs-1:0][UserBits-1:0]     in_user_i,
  input  logic [Inputs-1:0][DestBits-1:0]     in_dest_i,

  output logic [Outputs-1:0]                  out_valid_o,
  input  logic [Outputs-1:0]                  out_ready_i,
  output logic [Outputs-1:0][DataBytes*8-1:0] out_data_o,
  output logic [Outputs-1:0][DataBytes-1:0]   out_keep_o,
  output logic [Outputs-1:0]                  out_last_o,
  output logic [Outputs-1:0][UserBits-1:0]    out_user_o,
  output logic [Outputs-1:0][DestBits-1:0]    out_dest_o,
  // Which input the packet came from.
  output logic [Outputs-1:0][SourceBits-1:0]  out_source_o,

  output logic [Inputs-1:0]                   stray_o
);

  localparam int unsigned SideBits = DestBits + UserBits;

  // From each input to each output, seen from the input and from the output.
  logic [Inputs-1:0][Outputs-1:0]                  split_valid, split_ready, split_last;
  logic [Inputs-1:0][Outputs-1:0][DataBytes*8-1:0] split_data;
  logic [Inputs-1:0][Outputs-1:0][DataBytes-1:0]   split_keep;
  logic [Inputs-1:0][Outputs-1:0][UserBits-1:0]    split_user;
  logic [Inputs-1:0][Outputs-1:0][DestBits-1:0]    split_dest;
  logic [Outputs-1:0][Inputs-1:0]                  merge_valid, merge_ready, merge_last;
  logic [Outputs-1:0][Inputs-1:0][DataBytes*8-1:0] merge_data;
  logic [Outputs-1:0][Inputs-1:0][DataBytes-1:0]   merge_keep;
  logic [Outputs-1:0][Inputs-1:0][SideBits-1:0]    merge_side;

  for (genvar i = 0; i < Inputs; i++) begin : gen_cross
    for (genvar o = 0; o < Outputs; o++) begin : gen_to
      assign merge_valid[o][i] = split_valid[i][o];
      assign split_ready[i][o] = merge_ready[o][i];
      assign merge_last[o][i]  = split_last[i][o];
      assign merge_data[o][i]  = split_data[i][o];
      assign merge_keep[o][i]  = split_keep[i][o];
      assign merge_side[o][i]  = {split_dest[i][o], split_user[i][o]};
    end
  end

  for (genvar i = 0; i < Inputs; i++) begin : gen_in
    unisono_stream_demux #(
      .Outputs  (Outputs),
      .DataBytes(DataBytes),
      .UserBits (UserBits),
      .DestBits (DestBits)
    ) u_demux (
      .clk_i,
      .rst_ni,
      .in_valid_i (in_valid_i[i]),
      .in_ready_o (in_ready_o[i]),
      .in_data_i  (in_data_i[i]),
      .in_keep_i  (in_keep_i[i]),
      .in_last_i  (in_last_i[i]),
      .in_user_i  (in_user_i[i]),
      .in_dest_i  (in_dest_i[i]),
      .out_valid_o(split_valid[i]),
      .out_ready_i(split_ready[i]),
      .out_data_o (split_data[i]),
      .out_keep_o (split_keep[i]),
      .out_last_o (split_last[i]),
      .out_user_o (split_user[i]),
      .out_dest_o (split_dest[i]),
      .stray_o    (stray_o[i])
    );
  end

  for (genvar o = 0; o < Outputs; o++) begin : gen_out
    unisono_stream_arbiter #(
      .Inputs   (Inputs),
      .DataBytes(DataBytes),
      .UserBits (SideBits)
    ) u_arbiter (
      .clk_i,
      .rst_ni,
      .in_valid_i  (merge_valid[o]),
      .in_ready_o  (merge_ready[o]),
      .in_data_i   (merge_data[o]),
      .in_keep_i   (merge_keep[o]),
      .in_last_i   (merge_last[o]),
      .in_user_i   (merge_side[o]),
      .out_valid_o (out_valid_o[o]),
      .out_ready_i (out_ready_i[o]),
      .out_data_o  (out_data_o[o]),
      .out_keep_o  (out_keep_o[o]),
      .out_last_o  (out_last_o[o]),
      .out_user_o  ({out_dest_o[o], out_user_o[o]}),
      .out_source_o(out_source_o[o])
    );
  end

endmodule
