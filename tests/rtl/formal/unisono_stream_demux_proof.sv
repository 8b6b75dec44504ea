// Proof of unisono_stream_demux: a queue whose words carry where they go.
//
// A word leaves at one output, the one that its packet's first word named, and nowhere else; in
// order and unchanged. Destinations may differ within a packet: only the first counts.

module unisono_stream_demux_proof #(
  parameter int unsigned Outputs   = 3,
  localparam int unsigned DestBits = $clog2(Outputs)
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic                in_valid_i,
  input logic                in_bit_i,
  input logic                in_last_i,
  input logic [DestBits-1:0] in_dest_i,
  input logic [Outputs-1:0]  out_ready_i,
  input logic                mark_i
);

  logic                             in_ready, stray;
  logic [Outputs-1:0]               out_valid, out_last, out_keep, out_user;
  logic [Outputs-1:0][7:0]          out_data;
  logic [Outputs-1:0][DestBits-1:0] out_dest;

  unisono_stream_demux #(
    .Outputs  (Outputs),
    .DataBytes(1),
    .UserBits (1),
    .DestBits (DestBits)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o (in_ready),
    .in_data_i  ({7'd0, in_bit_i}),
    .in_keep_i  (1'b1),
    .in_last_i,
    .in_user_i  (1'b0),
    .in_dest_i,
    .out_valid_o(out_valid),
    .out_ready_i,
    .out_data_o (out_data),
    .out_keep_o (out_keep),
    .out_last_o (out_last),
    .out_user_o (out_user),
    .out_dest_o (out_dest),
    .stray_o    (stray)
  );

  // Where the packet that is coming in goes.
  logic                open_q;
  logic [DestBits-1:0] first_dest_q, dest;
  assign dest = open_q ? first_dest_q : in_dest_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q <= 1'b0;
    end else if (in_valid_i && in_ready) begin
      open_q <= !in_last_i;
      if (!open_q) first_dest_q <= in_dest_i;
    end
  end
  always_comb dest_exists: assume (32'(in_dest_i) < Outputs);

  // Which output has a word, and which.
  logic [DestBits-1:0] at;
  always_comb begin
    at = '0;
    for (int unsigned i = 0; i < Outputs; i++) begin
      if (out_valid[i]) at = DestBits'(i);
    end
  end

  unisono_queue_properties #(
    .Width   (2 * DestBits + 2),
    .Capacity(2),
    .Latency (1)
  ) u_properties (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_i (in_ready),
    .in_data_i  ({dest, dest, in_last_i, in_bit_i}),
    .out_valid_i(out_valid != '0),
    .out_ready_i((out_valid & out_ready_i) != '0),
    .out_data_i ({at, out_dest[at], out_last[at], out_data[at][0]}),
    .mark_i
  );

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      one_output: assert ((out_valid & (out_valid - 1'b1)) == '0);
      no_stray: assert (!stray);
    end
  end

  logic unused;
  assign unused = ^{out_keep, out_user, out_data};

endmodule
