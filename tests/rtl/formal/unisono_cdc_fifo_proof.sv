// Proof of unisono_cdc_fifo: words leave once, in order and unchanged, whatever the two clocks do.
//
// Both clocks are free. The content is free data: what holds for these few bits of payload holds for any, since the
// module never looks at it.

module unisono_cdc_fifo_proof #(
  parameter int unsigned Width = 1,
  parameter int unsigned Depth = 4
) (
  input logic             in_clk_i,
  input logic             in_rst_ni,
  input logic             in_valid_i,
  input logic [Width-1:0] in_data_i,
  input logic             mark_i,
  input logic             out_clk_i,
  input logic             out_rst_ni,
  input logic             out_ready_i
);

  localparam int unsigned CountBits = $clog2(2 * Depth + 2);
  typedef logic [CountBits-1:0] count_t;

  logic in_ready, out_valid;
  logic [Width-1:0] out_data;

  unisono_cdc_fifo #(
    .Width(Width),
    .Depth(Depth)
  ) u_dut (
    .in_clk_i,
    .in_rst_ni,
    .in_valid_i,
    .in_ready_o (in_ready),
    .in_data_i,
    .out_clk_i,
    .out_rst_ni,
    .out_valid_o(out_valid),
    .out_ready_i,
    .out_data_o (out_data)
  );

  // Both sides are reset until each clock has had two edges; no reset comes after that.
  logic [1:0] in_edges_q = '0, out_edges_q = '0;
  logic in_left_q = 1'b0, out_left_q = 1'b0;
  always_ff @(posedge in_clk_i) begin
    in_edges_q <= {in_edges_q[0], 1'b1};
    in_left_q <= in_rst_ni;
  end
  always_ff @(posedge out_clk_i) begin
    out_edges_q <= {out_edges_q[0], 1'b1};
    out_left_q <= out_rst_ni;
  end
  always_comb begin
    if (!in_edges_q[1] || !out_edges_q[1]) begin
      reset_long: assume (!in_rst_ni && !out_rst_ni);
    end
    if (in_left_q) in_once: assume (in_rst_ni);
    if (out_left_q) out_once: assume (out_rst_ni);
  end

  // Words that went in, the marked one among them.
  count_t pushed_q, marked_at_q;
  logic marked_q;
  logic [Width-1:0] marked_data_q;
  always_ff @(posedge in_clk_i) begin
    if (!in_rst_ni) begin
      pushed_q <= '0;
      marked_q <= 1'b0;
    end else if (in_valid_i && in_ready) begin
      pushed_q <= pushed_q + count_t'(1);
      if (mark_i && !marked_q) begin
        marked_q <= 1'b1;
        marked_at_q <= pushed_q;
        marked_data_q <= in_data_i;
      end
    end
  end

  // Words that came out.
  count_t popped_q, held;
  logic left_q, pop;
  assign pop = out_valid && out_ready_i;
  assign held = pushed_q - popped_q;
  always_ff @(posedge out_clk_i) begin
    if (!out_rst_ni) begin
      popped_q <= '0;
      left_q <= 1'b0;
    end else if (pop) begin
      popped_q <= popped_q + count_t'(1);
      if (marked_q && popped_q == marked_at_q) left_q <= 1'b1;
    end
  end

  always_ff @(posedge out_clk_i) begin
    if (out_rst_ni && out_left_q) begin
      if (out_valid) no_underflow: assert (held != '0);
      no_overflow: assert (32'(held) <= Depth + 1);
      if (out_valid && marked_q && !left_q && popped_q == marked_at_q) begin
        marked_unchanged: assert (out_data == marked_data_q);
      end
    end
  end

endmodule
