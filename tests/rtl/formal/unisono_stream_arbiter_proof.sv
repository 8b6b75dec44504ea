// Proof of unisono_stream_arbiter.
//
// - At most one input is ready at a time.
// - Packets stay whole: between an input's first and last word no other input is taken, and the
//   same at the output by the source number.
// - No starvation: an input that offers a packet waits for at most Inputs - 1 other packets to
//   begin.
// - No loss: any one word may be marked; it leaves unchanged, in its place, as from that input.
// - Throughput: while the receiver has never stalled, an offered word is taken at once.

module unisono_stream_arbiter_proof #(
  parameter int unsigned Inputs      = 3,
  localparam int unsigned DataBytes  = 1,
  localparam int unsigned UserBits   = 1,
  localparam int unsigned SourceBits = Inputs > 1 ? $clog2(Inputs) : 1
) (
  input logic                               clk_i,
  input logic                               rst_ni,
  input logic [Inputs-1:0]                  in_valid_i,
  input logic [Inputs-1:0]                  in_bit_i,
  input logic [Inputs-1:0]                  in_last_i,
  input logic                               out_ready_i,
  input logic                               mark_i
);

  // One free bit stands for the payload; the module never looks at it.
  logic [Inputs-1:0][DataBytes*8-1:0] in_data;
  logic [Inputs-1:0][DataBytes-1:0]   in_keep;
  logic [Inputs-1:0][UserBits-1:0]    in_user;
  for (genvar i = 0; i < Inputs; i++) begin : gen_in
    assign in_data[i] = (DataBytes * 8)'(in_bit_i[i]);
    assign in_keep[i] = '1;
    assign in_user[i] = '0;
  end

  logic [Inputs-1:0]      in_ready;
  logic                   out_valid, out_last;
  logic [DataBytes*8-1:0] out_data;
  logic [DataBytes-1:0]   out_keep;
  logic [UserBits-1:0]    out_user;
  logic [SourceBits-1:0]  out_source;

  unisono_stream_arbiter #(
    .Inputs   (Inputs),
    .DataBytes(DataBytes),
    .UserBits (UserBits)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o  (in_ready),
    .in_data_i   (in_data),
    .in_keep_i   (in_keep),
    .in_last_i,
    .in_user_i   (in_user),
    .out_valid_o (out_valid),
    .out_ready_i,
    .out_data_o  (out_data),
    .out_keep_o  (out_keep),
    .out_last_o  (out_last),
    .out_user_o  (out_user),
    .out_source_o(out_source)
  );

  logic unused;
  assign unused = ^{out_keep, out_user, out_data[DataBytes*8-1:1]};

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end

  // Senders that behave.
  logic [Inputs-1:0] stalled_q, bit_q, last_q;
  always_ff @(posedge clk_i) begin
    stalled_q <= rst_ni ? in_valid_i & ~in_ready : '0;
    bit_q     <= in_bit_i;
    last_q    <= in_last_i;
  end
  for (genvar i = 0; i < Inputs; i++) begin : gen_sender
    always_comb if (rst_ni && started_q && stalled_q[i]) begin
      sender_holds: assume (in_valid_i[i] && in_bit_i[i] == bit_q[i] && in_last_i[i] == last_q[i]);
    end
  end

  logic [Inputs-1:0] take;
  assign take = in_valid_i & in_ready;

  // The packet that is coming in, and the one that is going out.
  logic                  in_open_q, out_open_q;
  logic [Inputs-1:0]     in_from_q;
  logic [SourceBits-1:0] out_from_q;
  logic                  never_stalled_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_open_q       <= 1'b0;
      out_open_q      <= 1'b0;
      never_stalled_q <= 1'b1;
    end else begin
      if (take != '0) begin
        in_open_q <= (take & in_last_i) == '0;
        in_from_q <= take;
      end
      if (out_valid && out_ready_i) begin
        out_open_q <= !out_last;
        out_from_q <= out_source;
      end
      if (!out_ready_i) never_stalled_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      one_ready: assert ((in_ready & (in_ready - 1'b1)) == '0);
      if (in_open_q && take != '0) whole_in: assert (take == in_from_q);
      if (out_open_q && out_valid) whole_out: assert (out_source == out_from_q);
      if (never_stalled_q && !in_open_q && in_valid_i != '0) throughput: assert (take != '0);
      if (never_stalled_q && in_open_q && (in_valid_i & in_from_q) != '0) begin
        throughput_within: assert (take != '0);
      end
    end
  end

  for (genvar i = 0; i < Inputs; i++) begin : gen_wait
    // Packets of others that began since input i offers the beginning of one.
    logic [$clog2(Inputs+1)-1:0] others_q;
    logic                        mine_open_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        others_q    <= '0;
        mine_open_q <= 1'b0;
      end else begin
        if (take[i]) mine_open_q <= !in_last_i[i];
        if (!in_valid_i[i] || mine_open_q || take[i]) others_q <= '0;
        else if (take != '0 && !in_open_q) others_q <= others_q + 1'b1;
      end
    end
    always_ff @(posedge clk_i) begin
      if (rst_ni && started_q && in_valid_i[i] && !mine_open_q && !take[i] && take != '0 &&
          !in_open_q) begin
        no_starvation: assert (32'(others_q) < Inputs - 1);
      end
    end
  end

  // One marked word: what it was, whose, and how many words are ahead of it (at most two).
  logic                  marked_q, left_q, marked_bit_q, marked_last_q;
  logic [SourceBits-1:0] marked_source_q;
  logic [1:0]            inside_q, ahead_q;
  logic                  pop, push_bit, push_last;
  logic [SourceBits-1:0] push_source;

  assign pop       = out_valid && out_ready_i;
  assign push_bit  = (take & in_bit_i) != '0;
  assign push_last = (take & in_last_i) != '0;
  always_comb begin
    push_source = '0;
    for (int unsigned i = 0; i < Inputs; i++) begin
      if (take[i]) push_source = SourceBits'(i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= '0;
      marked_q <= 1'b0;
      left_q   <= 1'b0;
      ahead_q  <= '0;
    end else begin
      inside_q <= inside_q + 2'(take != '0) - 2'(pop);
      if (take != '0 && mark_i && !marked_q) begin
        marked_q        <= 1'b1;
        marked_bit_q    <= push_bit;
        marked_last_q   <= push_last;
        marked_source_q <= push_source;
        ahead_q         <= inside_q - 2'(pop);
      end else if (marked_q && !left_q && pop) begin
        ahead_q <= ahead_q - 1'b1;
        left_q  <= ahead_q == '0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      never_from_nothing: assert ((inside_q != '0) == out_valid);
      if (marked_q && !left_q && ahead_q == '0) begin
        marked_unchanged: assert (out_data[0] == marked_bit_q && out_last == marked_last_q &&
                                  out_source == marked_source_q);
      end
    end
  end

endmodule
