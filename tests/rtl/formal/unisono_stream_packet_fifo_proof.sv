// Proof of unisono_stream_packet_fifo.
//
// - A packet leaves without gaps: once its first word was offered, a word is offered in every
//   cycle until its last.
// - As many packets leave as were kept (not more; and while one is inside, one is offered soon).
// - The input is never stuck: when it is not ready, a packet is on its way out.
// - A dropped packet leaves no word: any one packet may be marked; if it is dropped, none of its
//   words ever appears. With user as the mark, no marked word appears after a drop.

module unisono_stream_packet_fifo_proof #(
  parameter int unsigned Depth        = 4,
  parameter bit          DropWhenFull = 1'b0,
  parameter bit          BlockRam     = 1'b0
) (
  input logic clk_i,
  input logic rst_ni,
  input logic in_valid_i,
  input logic in_last_i,
  input logic in_drop_i,
  input logic in_user_i,
  input logic out_ready_i
);

  logic       in_ready, out_valid, out_last, out_user, dropped;
  logic       out_keep;
  logic [7:0] out_data;

  unisono_stream_packet_fifo #(
    .DataBytes   (1),
    .UserBits    (1),
    .Depth       (Depth),
    .DropWhenFull(DropWhenFull),
    .BlockRam    (BlockRam)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o (in_ready),
    .in_data_i  (8'd0),
    .in_keep_i  (1'b1),
    .in_last_i,
    .in_user_i,
    .in_drop_i,
    .out_valid_o(out_valid),
    .out_ready_i,
    .out_data_o (out_data),
    .out_keep_o (out_keep),
    .out_last_o (out_last),
    .out_user_o (out_user),
    .dropped_o  (dropped)
  );

  logic unused;
  assign unused = ^{out_keep, out_data};

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end

  logic take, give;
  assign take = in_valid_i && in_ready;
  assign give = out_valid && out_ready_i;

  logic in_stalled_q, last_q, drop_q, user_q, in_open_q, packet_user_q, leaving_q, seen_q;
  // Packets whose fate is decided, and those that were not dropped and have not left.
  logic [$clog2(Depth+4)-1:0] kept_q;
  logic [2:0]                 silent_q;
  // The module tells of a drop one cycle after the last word.
  logic                       ended_q;
  logic                       ended_user_q;
  // Exactly one packet carries user = 1.
  always_ff @(posedge clk_i) begin
    in_stalled_q <= rst_ni && in_valid_i && !in_ready;
    last_q       <= in_last_i;
    drop_q       <= in_drop_i;
    user_q       <= in_user_i;
    if (!rst_ni) begin
      in_open_q    <= 1'b0;
      leaving_q    <= 1'b0;
      seen_q       <= 1'b0;
      kept_q       <= '0;
      ended_q      <= 1'b0;
      ended_user_q <= 1'b0;
      silent_q     <= '0;
    end else begin
      if (take) begin
        in_open_q     <= !in_last_i;
        packet_user_q <= in_user_i;
        if (in_last_i && in_user_i) seen_q <= 1'b1;
      end
      ended_q      <= take && in_last_i;
      ended_user_q <= in_user_i;
      if (give) leaving_q <= !out_last;
      kept_q <= kept_q + $bits(kept_q)'(ended_q && !dropped) - $bits(kept_q)'(give && out_last);
      if (kept_q != '0 && !out_valid) silent_q <= silent_q + 1'b1;
      else silent_q <= '0;
    end
  end
  always_comb if (rst_ni && started_q) begin
    if (in_stalled_q) begin
      sender_holds: assume (in_valid_i && in_last_i == last_q && in_drop_i == drop_q &&
                            in_user_i == user_q);
    end
    if (in_open_q) user_constant: assume (in_user_i == packet_user_q);
    if (seen_q) user_once: assume (!in_user_i);
  end

  // Whether the marked packet was dropped.
  logic gone_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) gone_q <= 1'b0;
    else if (ended_q && dropped && ended_user_q) gone_q <= 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      if (leaving_q) no_gap: assert (out_valid);
      if (out_valid) only_whole_packets: assert (kept_q != '0 || (ended_q && !dropped));
      never_stuck: assert (in_ready || kept_q != '0 || (ended_q && !dropped));
      soon_offered: assert (silent_q < 3'd3);
      if (gone_q) dropped_leaves_nothing: assert (!out_valid || !out_user);
      if (dropped) drop_only_at_an_end: assert (ended_q);
      if (DropWhenFull) always_ready: assert (in_ready);
    end
  end

endmodule
