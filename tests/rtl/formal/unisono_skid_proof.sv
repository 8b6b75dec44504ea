// Proof of unisono_skid: behaves as a queue of at most two words, at full throughput.
//
// Any one pushed word may be marked; the number of words ahead of it is then known, and when
// these have left, the marked word must be the one on offer. Since the mark is free, this holds
// for every word: nothing is lost, doubled, reordered or changed.

module unisono_skid_proof #(
  parameter int unsigned Width    = 3,
  // A word that finds the slice empty is on offer this many cycles later.
  parameter int unsigned Latency  = 1,
  parameter int unsigned Capacity = 2
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             in_valid_i,
  input logic [Width-1:0] in_data_i,
  input logic             out_ready_i,
  input logic             mark_i
);

  logic             in_ready, out_valid;
  logic [Width-1:0] out_data;

  unisono_skid #(
    .Width(Width)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o (in_ready),
    .in_data_i,
    .out_valid_o(out_valid),
    .out_ready_i,
    .out_data_o (out_data)
  );

  unisono_queue_properties #(
    .Width   (Width),
    .Capacity(Capacity),
    .Latency (Latency)
  ) u_properties (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_i (in_ready),
    .in_data_i,
    .out_valid_i(out_valid),
    .out_ready_i,
    .out_data_i (out_data),
    .mark_i
  );

  // A free slice takes words without end: with a receiver that never stalls, ready stays high.
  logic never_stalled_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) never_stalled_q <= 1'b1;
    else if (!out_ready_i) never_stalled_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni && never_stalled_q) throughput: assert (in_ready);
  end

endmodule
