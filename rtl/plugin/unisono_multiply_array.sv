// Unsigned product of two Width-bit numbers, as products of 26 by 17 bits that fit signed 27 by 18
// bit multipliers of DSP slices.
//
// op0 is cut into pieces of 26 bits; each makes a row: a chain in which piece after piece of 17
// bits of op1 is multiplied, and the sum so far, shifted right by 17, added, as DSP slices do in a
// cascade. The rows are then added.
//
// Latency: multiply_array_latency(Width). Throughput: one product per cycle. No reset: data only.

module unisono_multiply_array
  import unisono_plugin_pkg::*;
#(
  parameter int unsigned Width = 64
) (
  input  logic               clk_i,
  input  logic [  Width-1:0] a_i,
  input  logic [  Width-1:0] b_i,
  output logic [2*Width-1:0] product_o
);

  localparam int unsigned Rows = (Width + 25) / 26;
  localparam int unsigned Steps = (Width + 16) / 17;
  localparam int unsigned RowBits = 26 + 17 * Steps;
  localparam int unsigned TotalBits = 26 * Rows + 17 * Steps;

  logic [26*Rows-1:0] a;
  logic [17*Steps-1:0] b;
  assign a = (26 * Rows)'(a_i);
  assign b = (17 * Steps)'(b_i);

  logic [Rows-1:0][RowBits-1:0] rows;
  for (genvar r = 0; r < Rows; r++) begin : gen_row
    for (genvar s = 0; s < Steps; s++) begin : gen_step
      // A step begins when the one before it has its sum.
      logic [25:0] a_piece;
      logic [16:0] b_piece;
      unisono_plugin_delay #(
        .Width (43),
        .Cycles(s < 2 ? 0 : s - 1)
      ) u_wait (
        .clk_i,
        .d_i({a[26*r+:26], b[17*s+:17]}),
        .q_o({a_piece, b_piece})
      );

      // It never needs more bits: (2^26 - 1) (2^17 - 1) + (2^26 - 1) < 2^43.
      logic [42:0] product_q, sum;
      always_ff @(posedge clk_i) product_q <= 43'(a_piece) * 43'(b_piece);
      if (s == 0) begin : gen_first
        assign sum = product_q;
      end else begin : gen_next
        logic [42:0] sum_q;
        always_ff @(posedge clk_i) sum_q <= product_q + 43'(gen_step[s-1].sum[42:17]);
        assign sum = sum_q;
      end

      // 17 bits are done, after the last step all.
      localparam int unsigned DoneBits = s == Steps - 1 ? 43 : 17;
      unisono_plugin_delay #(
        .Width (DoneBits),
        .Cycles(Steps - 1 - s)
      ) u_done (
        .clk_i,
        .d_i(sum[DoneBits-1:0]),
        .q_o(rows[r][17*s+:DoneBits])
      );
    end
  end

  // Row r is 26 r bits up. Stage r adds it to those below.
  logic [Rows-1:0][TotalBits-1:0] totals;
  assign totals[0] = TotalBits'(rows[0]);
  for (genvar r = 1; r < Rows; r++) begin : gen_total
    logic [RowBits-1:0] row;
    unisono_plugin_delay #(
      .Width (RowBits),
      .Cycles(r - 1)
    ) u_wait (
      .clk_i,
      .d_i(rows[r]),
      .q_o(row)
    );
    logic [TotalBits-1:0] total_q;
    always_ff @(posedge clk_i) begin
      total_q <= {totals[r-1][TotalBits-1:26*r] + (TotalBits - 26 * r)'(row),
                  totals[r-1][26*r-1:0]};
    end
    assign totals[r] = total_q;
  end

  assign product_o = totals[Rows-1][2*Width-1:0];

  // The pieces reach beyond the product, where all is zero.
  if (TotalBits > 2 * Width) begin : gen_unused
    logic unused;
    assign unused = ^totals[Rows-1][TotalBits-1:2*Width];
  end

endmodule
