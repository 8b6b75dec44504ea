// A table of bits with one writer that raises them and another that lowers them, one bit at a time, in LUT memory.
//
// Each bit is the difference of two: the one who raises it writes the first as the opposite of the second, the one who
// lowers it copies the first into the second. So no memory has two writers. Raising a bit that is high, and lowering
// one that is low, change nothing.
//
// Latency: a bit that is raised or lowered is read as such from the next cycle on. Throughput: one of each per cycle.
// A bit that is raised and lowered in the same cycle becomes what it was not.
// Restrictions: a reset leaves the bits as they are.

module unisono_flags #(
  parameter int unsigned Depth = 512,
  localparam int unsigned IndexWidth = $clog2(Depth)
) (
  input  logic                  clk_i,

  input  logic                  raise_valid_i,
  input  logic [IndexWidth-1:0] raise_index_i,
  output logic                  raise_bit_o,     // the bit there

  input  logic                  lower_valid_i,
  input  logic [IndexWidth-1:0] lower_index_i,
  output logic                  lower_bit_o,

  input  logic [IndexWidth-1:0] read_index_i,
  output logic                  read_bit_o
);

  (* ram_style = "distributed" *) logic up_q [Depth];
  (* ram_style = "distributed" *) logic down_q [Depth];

  initial begin
    for (int i = 0; i < int'(Depth); i++) begin
      up_q[i] = 1'b0;
      down_q[i] = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (raise_valid_i) up_q[raise_index_i] <= !down_q[raise_index_i];
  end
  always_ff @(posedge clk_i) begin
    if (lower_valid_i) down_q[lower_index_i] <= up_q[lower_index_i];
  end

  assign raise_bit_o = up_q[raise_index_i] ^ down_q[raise_index_i];
  assign lower_bit_o = up_q[lower_index_i] ^ down_q[lower_index_i];
  assign read_bit_o = up_q[read_index_i] ^ down_q[read_index_i];

endmodule
