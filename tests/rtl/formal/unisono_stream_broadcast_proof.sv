// Proof of unisono_stream_broadcast: towards each output a queue of the words whose packet names
// it. Nothing is lost, doubled, reordered or changed, whatever the other outputs do; and while no
// output has ever stalled, neither does the input.

module unisono_stream_broadcast_proof #(
  parameter int unsigned Outputs = 2
) (
  input logic               clk_i,
  input logic               rst_ni,
  input logic               in_valid_i,
  input logic               in_bit_i,
  input logic               in_last_i,
  input logic [Outputs-1:0] in_mask_i,
  input logic [Outputs-1:0] out_ready_i,
  input logic [Outputs-1:0] mark_i
);

  logic                    in_ready;
  logic [Outputs-1:0]      out_valid, out_last, out_keep, out_user;
  logic [Outputs-1:0][7:0] out_data;

  unisono_stream_broadcast #(
    .Outputs  (Outputs),
    .DataBytes(1),
    .UserBits (1)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o (in_ready),
    .in_data_i  ({7'd0, in_bit_i}),
    .in_keep_i  (1'b1),
    .in_last_i,
    .in_user_i  (1'b0),
    .in_mask_i,
    .out_valid_o(out_valid),
    .out_ready_i,
    .out_data_o (out_data),
    .out_keep_o (out_keep),
    .out_last_o (out_last),
    .out_user_o (out_user)
  );

  // The mask of the packet that is coming in; later words' masks are free.
  logic               open_q, stalled_q, never_stalled_q;
  logic [Outputs-1:0] first_mask_q, mask_q, mask;
  assign mask = open_q ? first_mask_q : in_mask_i;
  always_ff @(posedge clk_i) begin
    stalled_q <= rst_ni && in_valid_i && !in_ready;
    mask_q    <= in_mask_i;
    if (!rst_ni) begin
      open_q          <= 1'b0;
      never_stalled_q <= 1'b1;
    end else begin
      if (in_valid_i && in_ready) begin
        open_q <= !in_last_i;
        if (!open_q) first_mask_q <= in_mask_i;
      end
      if (out_ready_i != '1) never_stalled_q <= 1'b0;
    end
  end
  always_comb if (rst_ni && stalled_q) begin
    mask_holds: assume (in_valid_i && in_mask_i == mask_q);
  end

  for (genvar i = 0; i < Outputs; i++) begin : gen_out
    // An output that has its word early waits for the others: then its queue offers nothing.
    unisono_queue_properties #(
      .Width       (2),
      .Capacity    (2),
      .CheckReady  (1'b0),
      .CheckLatency(1'b0)
    ) u_properties (
      .clk_i,
      .rst_ni,
      .in_valid_i (in_valid_i && mask[i]),
      .in_ready_i (in_ready),
      .in_data_i  ({in_last_i, in_bit_i}),
      .out_valid_i(out_valid[i]),
      .out_ready_i(out_ready_i[i]),
      .out_data_i ({out_last[i], out_data[i][0]}),
      .mark_i     (mark_i[i])
    );
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && never_stalled_q) throughput: assert (in_ready);
  end

  logic unused;
  assign unused = ^{out_keep, out_user, out_data};

endmodule
