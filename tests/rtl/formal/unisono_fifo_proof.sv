// Proof of unisono_fifo: a queue of exactly Depth words.
//
// The queue's content is free data: what holds for these few bits of payload holds for any, since
// the module never looks at it.

module unisono_fifo_proof #(
  parameter int unsigned Width    = 2,
  parameter int unsigned Depth    = 4,
  parameter bit          BlockRam = 1'b0
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             in_valid_i,
  input logic [Width-1:0] in_data_i,
  input logic             out_ready_i,
  input logic             mark_i
);

  localparam int unsigned CountBits = $clog2(Depth + 1);

  logic                 in_ready, out_valid;
  logic [Width-1:0]     out_data;
  logic [CountBits-1:0] count;

  unisono_fifo #(
    .Width   (Width),
    .Depth   (Depth),
    .BlockRam(BlockRam)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o (in_ready),
    .in_data_i,
    .out_valid_o(out_valid),
    .out_ready_i,
    .out_data_o (out_data),
    .count_o    (count)
  );

  unisono_queue_properties #(
    .Width   (Width),
    .Capacity(Depth),
    .Latency (BlockRam ? 3 : 1)
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

  // An own count of the words inside.
  logic [CountBits-1:0] inside_q;
  // A receiver that has never stalled never stalls the sender.
  logic                 never_stalled_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q        <= '0;
      never_stalled_q <= 1'b1;
    end else begin
      inside_q <= inside_q + CountBits'(in_valid_i && in_ready) -
                  CountBits'(out_valid && out_ready_i);
      if (!out_ready_i) never_stalled_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      count_exact: assert (count == inside_q);
      if (never_stalled_q) throughput: assert (in_ready);
    end
  end

endmodule
