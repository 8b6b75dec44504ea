// Proof of unisono_stream_width, byte by byte.
//
// Any one byte may be marked; the number of bytes ahead of it is then known, and it must leave in
// its place, unchanged, as the last of its packet exactly if it came as such. Hence no byte is
// lost, doubled, moved or changed, and packets keep their ends. Words are full but at a packet's
// end, and an offered word stays. While the receiver has never stalled, a narrow sender never
// waits.

module unisono_stream_width_proof #(
  parameter int unsigned InBytes  = 1,
  parameter int unsigned OutBytes = 3
) (
  input logic               clk_i,
  input logic               rst_ni,
  input logic               in_valid_i,
  // One free bit for each byte, and how many bytes the last word of a packet has.
  input logic [InBytes-1:0] in_bits_i,
  input logic [7:0]         in_count_i,
  input logic               in_last_i,
  input logic               out_ready_i,
  input logic               mark_i,
  input logic [7:0]         mark_at_i
);

  localparam int unsigned Wide = InBytes > OutBytes ? InBytes : OutBytes;

  logic                     in_ready, out_valid, out_last, out_user;
  logic [InBytes-1:0][7:0]  in_data;
  logic [InBytes-1:0]       in_keep;
  logic [OutBytes-1:0][7:0] out_data;
  logic [OutBytes-1:0]      out_keep;
  logic [7:0]               in_count, out_count;

  always_comb begin
    count_possible: assume (in_count_i != '0 && 32'(in_count_i) <= InBytes);
  end
  assign in_count = in_last_i ? in_count_i : 8'(InBytes);
  for (genvar i = 0; i < InBytes; i++) begin : gen_in
    assign in_data[i] = {7'd0, in_bits_i[i]};
    assign in_keep[i] = 8'(i) < in_count;
  end

  unisono_stream_width #(
    .InBytes (InBytes),
    .OutBytes(OutBytes),
    .UserBits(1)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o (in_ready),
    .in_data_i  (in_data),
    .in_keep_i  (in_keep),
    .in_last_i,
    .in_user_i  (1'b0),
    .out_valid_o(out_valid),
    .out_ready_i,
    .out_data_o (out_data),
    .out_keep_o (out_keep),
    .out_last_o (out_last),
    .out_user_o (out_user)
  );

  always_comb begin
    out_count = '0;
    for (int unsigned i = 0; i < OutBytes; i++) begin
      out_count += 8'(out_keep[i]);
    end
  end

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end

  logic               in_stalled_q, last_q;
  logic [InBytes-1:0] bits_q;
  logic [7:0]         count_q;
  always_ff @(posedge clk_i) begin
    in_stalled_q <= rst_ni && in_valid_i && !in_ready;
    last_q       <= in_last_i;
    bits_q       <= in_bits_i;
    count_q      <= in_count_i;
  end
  always_comb if (rst_ni && started_q && in_stalled_q) begin
    sender_holds: assume (in_valid_i && in_last_i == last_q && in_bits_i == bits_q &&
                          in_count_i == count_q);
  end

  logic push, pop;
  assign push = in_valid_i && in_ready;
  assign pop  = out_valid && out_ready_i;

  // Bytes inside; ends of packets inside; the marked byte and how many are ahead of it.
  logic [7:0] inside_q, ahead_q;
  logic [2:0] ends_q;
  logic       marked_q, left_q, marked_bit_q, marked_last_q, never_stalled_q;
  logic       marks;

  assign marks = push && mark_i && !marked_q && mark_at_i < in_count;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q        <= '0;
      ends_q          <= '0;
      marked_q        <= 1'b0;
      left_q          <= 1'b0;
      ahead_q         <= '0;
      never_stalled_q <= 1'b1;
    end else begin
      inside_q <= inside_q + (push ? in_count : 8'd0) - (pop ? out_count : 8'd0);
      ends_q   <= ends_q + 3'(push && in_last_i) - 3'(pop && out_last);
      if (!out_ready_i) never_stalled_q <= 1'b0;
      if (marks) begin
        marked_q      <= 1'b1;
        marked_last_q <= in_last_i && mark_at_i == in_count - 8'd1;
        ahead_q       <= inside_q + mark_at_i - (pop ? out_count : 8'd0);
        for (int unsigned i = 0; i < InBytes; i++) begin
          if (mark_at_i == 8'(i)) marked_bit_q <= in_bits_i[i];
        end
      end else if (marked_q && !left_q && pop) begin
        if (ahead_q < out_count) left_q <= 1'b1;
        else ahead_q <= ahead_q - out_count;
      end
    end
  end

  logic                     out_stalled_q, out_last_q;
  logic [OutBytes-1:0]      out_keep_q;
  logic [OutBytes-1:0][7:0] out_data_q;
  always_ff @(posedge clk_i) begin
    out_stalled_q <= rst_ni && out_valid && !out_ready_i;
    out_last_q    <= out_last;
    out_keep_q    <= out_keep;
    out_data_q    <= out_data;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      if (out_stalled_q) begin
        offer_holds: assert (out_valid && out_last == out_last_q && out_keep == out_keep_q);
      end
      no_underflow: assert (!out_valid || out_count <= inside_q);
      no_overflow: assert (32'(inside_q) <= Wide);
      if (out_valid) begin
        full_but_at_the_end: assert (out_last || out_keep == '1);
        contiguous: assert ((out_keep & (out_keep + 1'b1)) == '0 && out_keep != '0);
      end
      if (32'(inside_q) >= OutBytes || ends_q != '0) complete_is_offered: assert (out_valid);
      if (never_stalled_q && out_ready_i && InBytes < OutBytes) begin
        narrow_never_waits: assert (in_ready);
      end
      if (marked_q && !left_q && out_valid && ahead_q < out_count) begin
        ends_stay: assert (marked_last_q == (out_last && ahead_q == out_count - 8'd1));
      end
    end
  end

  for (genvar i = 0; i < OutBytes; i++) begin : gen_byte
    always_ff @(posedge clk_i) begin
      if (rst_ni && started_q) begin
        if (out_stalled_q && out_keep[i]) offer_holds: assert (out_data[i] == out_data_q[i]);
        if (marked_q && !left_q && out_valid && ahead_q < out_count && ahead_q == 8'(i)) begin
          marked_unchanged: assert (out_data[i] == {7'd0, marked_bit_q});
        end
      end
    end
  end

  logic unused;
  assign unused = out_user;

endmodule
