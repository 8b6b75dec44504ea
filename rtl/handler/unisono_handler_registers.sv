// The registers of a function: scalars, vectors and the counters of loops. All are 0 after `clear_i`.
//
// What has not been written since then reads as 0, whatever its memory holds. Vectors are read and written in beats of
// `Columns` lanes. Reads are combinational; what is written is there in the next cycle. Throughput: all reads and
// writes of each kind per cycle. Those who write have a memory each, and it is kept which of them was written last; of
// writes of one register in one cycle the one that stays is that of the later instruction: what lands was read by an
// earlier one than that whose result is written, and those that go along write other scalars than that one.
module unisono_handler_registers
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned Columns = 16,  // a power of two, 16 at most
  localparam int unsigned Beats = 16 / Columns,
  localparam int unsigned PlaceBits = 5 + $clog2(Beats)
) (
  input  logic                  clk_i,
  input  logic                  clear_i,

  input  logic [ScalarReads-1:0][5:0] scalar_i,
  output cell_t [ScalarReads-1:0]     scalar_o,
  input  logic [ScalarWrites-1:0]      scalar_write_i,  // the result, of those that go along, and what lands
  input  logic [ScalarWrites-1:0][5:0] scalar_to_i,
  input  cell_t [ScalarWrites-1:0]     scalar_data_i,

  // Register and beat: the beat in the lower bits.
  input  logic [2:0][PlaceBits-1:0] vector_i,
  output cell_t [2:0][Columns-1:0]    vector_o,
  input  logic [VectorWrites-1:0][Columns-1:0]   vector_write_i,  // the result, and two that land, the later one last
  input  logic [VectorWrites-1:0][PlaceBits-1:0] vector_to_i,
  input  cell_t [VectorWrites-1:0][Columns-1:0]  vector_data_i,

  input  logic [5:0]            loop_i,  // read, and written
  output logic [31:0]           loop_o,
  input  logic                  loop_write_i,
  input  logic [31:0]           loop_data_i
);

  // Whose write was the last one of each register; and that which stays of those of a cycle comes last.
  logic [ScalarRegisters-1:0] scalar_used_q;
  logic [1:0] scalar_last_q [ScalarRegisters];
  always_ff @(posedge clk_i) begin
    for (int unsigned w = ScalarWrites; w > 0; w--) begin
      if (scalar_write_i[w-1]) scalar_used_q[scalar_to_i[w-1]] <= 1'b1;
      if (scalar_write_i[w-1]) scalar_last_q[scalar_to_i[w-1]] <= 2'(w - 1);
    end
    if (clear_i) scalar_used_q <= '0;
  end
  cell_t [ScalarReads-1:0][ScalarWrites-1:0] scalars;
  for (genvar w = 0; w < int'(ScalarWrites); w++) begin : gen_scalars
    (* ram_style = "distributed" *) cell_t cells_q [ScalarRegisters];
    always_ff @(posedge clk_i) if (scalar_write_i[w]) cells_q[scalar_to_i[w]] <= scalar_data_i[w];
    for (genvar i = 0; i < int'(ScalarReads); i++) begin : gen_read
      assign scalars[i][w] = cells_q[scalar_i[i]];
    end
  end
  for (genvar i = 0; i < int'(ScalarReads); i++) begin : gen_scalar
    assign scalar_o[i] = scalar_used_q[scalar_i[i]] ? scalars[i][scalar_last_q[scalar_i[i]]] : '0;
  end

  // Lanes are written apart from one another.
  for (genvar l = 0; l < int'(Columns); l++) begin : gen_lane
    logic [(1<<PlaceBits)-1:0] used_q;
    logic [1:0] last_q [1 << PlaceBits];
    always_ff @(posedge clk_i) begin
      for (int unsigned w = 1; w <= VectorWrites; w++) begin
        // Landing ones in their order, then the result.
        if (vector_write_i[w%VectorWrites][l]) used_q[vector_to_i[w%VectorWrites]] <= 1'b1;
        if (vector_write_i[w%VectorWrites][l]) last_q[vector_to_i[w%VectorWrites]] <= 2'(w % VectorWrites);
      end
      if (clear_i) used_q <= '0;
    end
    cell_t [2:0][VectorWrites-1:0] lanes;
    for (genvar w = 0; w < int'(VectorWrites); w++) begin : gen_lanes
      (* ram_style = "distributed" *) cell_t cells_q [1 << PlaceBits];
      always_ff @(posedge clk_i) if (vector_write_i[w][l]) cells_q[vector_to_i[w]] <= vector_data_i[w][l];
      for (genvar i = 0; i < 3; i++) begin : gen_read
        assign lanes[i][w] = cells_q[vector_i[i]];
      end
    end
    for (genvar i = 0; i < 3; i++) begin : gen_vector
      assign vector_o[i][l] = used_q[vector_i[i]] ? lanes[i][last_q[vector_i[i]]] : '0;
    end
  end

  (* ram_style = "distributed" *) logic [31:0] loops_q [MostLoops];
  logic [MostLoops-1:0] loop_used_q;
  always_ff @(posedge clk_i) begin
    if (clear_i) loop_used_q <= '0;
    else if (loop_write_i) loop_used_q[loop_i] <= 1'b1;
    if (loop_write_i) loops_q[loop_i] <= loop_data_i;
  end
  assign loop_o = loop_used_q[loop_i] ? loops_q[loop_i] : '0;

endmodule
