// What every queue between two valid/ready channels must keep, for proofs.
//
// Assumes a reset in the first cycle and a well-behaved sender (an offered word stays). Asserts:
// - the receiver sees a well-behaved sender;
// - never more than Capacity words inside, never a word out of an empty queue;
// - when fewer than Capacity words are inside, the queue is ready (where CheckReady);
// - a queue that holds a word offers one at most Latency cycles later (where CheckLatency);
// - the marked word leaves unchanged, after exactly those that were pushed before it.

module unisono_queue_properties #(
  parameter int unsigned Width        = 3,
  parameter int unsigned Capacity     = 2,
  parameter int unsigned Latency      = 1,
  parameter bit          CheckReady   = 1'b1,
  parameter bit          CheckLatency = 1'b1
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             in_valid_i,
  input logic             in_ready_i,
  input logic [Width-1:0] in_data_i,
  input logic             out_valid_i,
  input logic             out_ready_i,
  input logic [Width-1:0] out_data_i,
  input logic             mark_i
);

  localparam int unsigned CountBits = $clog2(Capacity + 2);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end

  logic push, pop;
  assign push = in_valid_i && in_ready_i;
  assign pop  = out_valid_i && out_ready_i;

  // Words inside.
  logic [CountBits-1:0] inside_q;
  // The word marked, and how many words are ahead of it.
  logic                 marked_q, left_q;
  logic [Width-1:0]     marked_data_q;
  logic [CountBits-1:0] ahead_q;
  // Cycles for which a non-empty queue has offered nothing.
  logic [$clog2(Latency+2)-1:0] silent_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= '0;
      marked_q <= 1'b0;
      left_q   <= 1'b0;
      ahead_q  <= '0;
      silent_q <= '0;
    end else begin
      inside_q <= inside_q + CountBits'(push) - CountBits'(pop);
      if (push && mark_i && !marked_q) begin
        marked_q      <= 1'b1;
        marked_data_q <= in_data_i;
        ahead_q       <= inside_q - CountBits'(pop);
      end else if (marked_q && !left_q && pop) begin
        ahead_q <= ahead_q - 1'b1;
        left_q  <= ahead_q == '0;
      end
      if (inside_q != '0 && !out_valid_i) silent_q <= silent_q + 1'b1;
      else silent_q <= '0;
    end
  end

  // Handshakes as of the last cycle.
  logic             in_stalled_q, out_stalled_q;
  logic [Width-1:0] in_data_q, out_data_q;
  always_ff @(posedge clk_i) begin
    in_stalled_q  <= rst_ni && in_valid_i && !in_ready_i;
    out_stalled_q <= rst_ni && out_valid_i && !out_ready_i;
    in_data_q     <= in_data_i;
    out_data_q    <= out_data_i;
  end

  always_comb if (rst_ni && started_q && in_stalled_q) begin
    sender_holds: assume (in_valid_i && in_data_i == in_data_q);
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      if (out_stalled_q) offer_holds: assert (out_valid_i && out_data_i == out_data_q);
      if (inside_q == '0) no_underflow: assert (!out_valid_i);
      no_overflow: assert (inside_q <= CountBits'(Capacity));
      if (inside_q == CountBits'(Capacity) && !pop) full_refuses: assert (!in_ready_i);
      if (CheckReady && inside_q < CountBits'(Capacity)) ready_below: assert (in_ready_i);
      if (CheckLatency) soon_offered: assert (32'(silent_q) < 32'(Latency));
      if (marked_q && !left_q && ahead_q == '0 && out_valid_i) begin
        marked_unchanged: assert (out_data_i == marked_data_q);
      end
      if (marked_q && !left_q) marked_inside: assert (ahead_q < inside_q);
    end
  end

endmodule
