// First-in first-out queue from one clock to another, between two valid/ready channels.
//
// Each side counts its words in Gray code, which the other side reads through unisono_cdc_sync: it sees the count as it
// is, or as it was, never more words or more room than there are. Words lie in LUTRAM; a word is written long before
// its count arrives, so that it stands still when it is read.
// Latency: 1 cycle of in_clk_i, then Stages + 1 to Stages + 2 of out_clk_i. Throughput: 1 word per cycle of the slower
// clock, if Depth is at least 2 * Stages + 4.
// Resets: both sides are reset together, long enough for two edges of each clock, and each leaves it with its own clock.

module unisono_cdc_fifo #(
  parameter int unsigned Width  = 64,
  parameter int unsigned Depth  = 16,  // a power of two, 4 or more
  parameter int unsigned Stages = 2
) (
  input  logic             in_clk_i,
  input  logic             in_rst_ni,
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [Width-1:0] in_data_i,

  input  logic             out_clk_i,
  input  logic             out_rst_ni,
  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [Width-1:0] out_data_o
);

  if (Depth < 4 || (Depth & (Depth - 1)) != 0) begin : gen_bad_depth
    $error("unisono_cdc_fifo: Depth must be a power of two, 4 or more");
  end

  // Counts go to twice the depth, so that full and empty differ.
  localparam int unsigned AddressBits = $clog2(Depth);
  typedef logic [AddressBits:0] count_t;

  function automatic count_t gray(count_t count);
    return count ^ (count >> 1);
  endfunction

  (* ram_style = "distributed" *) logic [Width-1:0] mem [Depth];

  // Words written, as this side knows them and as it shows them; words read, as the other side shows them.
  count_t written_q, written_d, written_gray_q, read_gray_q;
  count_t written_seen, read_seen;
  logic push, ready_q;

  assign push = in_valid_i && ready_q;
  assign written_d = written_q + count_t'(push);
  assign in_ready_o = ready_q;

  unisono_cdc_sync #(
    .Width (AddressBits + 1),
    .Stages(Stages)
  ) u_read (
    .clk_i (in_clk_i),
    .rst_ni(in_rst_ni),
    .data_i(read_gray_q),
    .data_o(read_seen)
  );

  always_ff @(posedge in_clk_i) begin
    if (!in_rst_ni) begin
      written_q <= '0;
      written_gray_q <= '0;
      ready_q <= 1'b0;
    end else begin
      written_q <= written_d;
      written_gray_q <= gray(written_d);
      // Full: the counts differ by Depth, which in Gray code are the two upper bits.
      ready_q <= gray(written_d) != (read_seen ^ count_t'(3 << (AddressBits - 1)));
    end
  end

  always_ff @(posedge in_clk_i) begin
    if (push) mem[written_q[AddressBits-1:0]] <= in_data_i;
  end

  // Words taken from the memory into the output register.
  count_t read_q, read_d;
  logic take, valid_q;
  logic [Width-1:0] data_q;

  assign take = written_seen != read_gray_q && (out_ready_i || !valid_q);
  assign read_d = read_q + count_t'(take);

  unisono_cdc_sync #(
    .Width (AddressBits + 1),
    .Stages(Stages)
  ) u_written (
    .clk_i (out_clk_i),
    .rst_ni(out_rst_ni),
    .data_i(written_gray_q),
    .data_o(written_seen)
  );

  always_ff @(posedge out_clk_i) begin
    if (!out_rst_ni) begin
      read_q <= '0;
      read_gray_q <= '0;
      valid_q <= 1'b0;
    end else begin
      read_q <= read_d;
      read_gray_q <= gray(read_d);
      if (out_ready_i || !valid_q) valid_q <= take;
    end
  end

  always_ff @(posedge out_clk_i) begin
    if (take) data_q <= mem[read_q[AddressBits-1:0]];
  end

  assign out_valid_o = valid_q;
  assign out_data_o = data_q;

`ifndef SYNTHESIS
  unisono_handshake_check #(
    .Width(Width)
  ) u_check_in (
    .clk_i  (in_clk_i),
    .rst_ni (in_rst_ni),
    .valid_i(in_valid_i),
    .ready_i(in_ready_o),
    .data_i (in_data_i)
  );
  unisono_handshake_check #(
    .Width(Width)
  ) u_check_out (
    .clk_i  (out_clk_i),
    .rst_ni (out_rst_ni),
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i (out_data_o)
  );
`endif

endmodule
