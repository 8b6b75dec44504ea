// The registers of a function: scalars, vectors and the counters of loops. All are 0 after `clear_i`.
//
// What has not been written since then reads as 0, whatever its memory holds. Vectors are read and written in beats of
// `Columns` lanes. Reads are combinational; what is written is there in the next cycle. Throughput: two writes and all
// reads of each kind per cycle: one of results, one of what lands from memory or payload; of scalars also that of an
// instruction that goes along. Each has its own memory, and it is kept which of them was written last; of writes of one
// register in one cycle the one that stays is that of the later instruction.
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

  input  logic [7:0][5:0]       scalar_i,
  output cell_t [7:0]           scalar_o,
  input  logic                  scalar_write_i,
  input  logic [5:0]            scalar_to_i,
  input  cell_t                 scalar_data_i,

  input  logic                  scalar_along_i,  // of another one than `scalar_write_i`
  input  logic [5:0]            scalar_along_to_i,
  input  cell_t                 scalar_along_data_i,
  input  logic                  scalar_land_i,
  input  logic [5:0]            scalar_land_to_i,
  input  cell_t                 scalar_land_data_i,

  // Register and beat: the beat in the lower bits.
  input  logic [2:0][PlaceBits-1:0] vector_i,
  output cell_t [2:0][Columns-1:0]    vector_o,
  input  logic [Columns-1:0]          vector_write_i,
  input  logic [PlaceBits-1:0]      vector_to_i,
  input  cell_t [Columns-1:0]         vector_data_i,
  input  logic [Columns-1:0]          vector_land_i,
  input  logic [PlaceBits-1:0]      vector_land_to_i,
  input  cell_t [Columns-1:0]         vector_land_data_i,

  input  logic [5:0]            loop_i,  // read, and written
  output logic [31:0]           loop_o,
  input  logic                  loop_write_i,
  input  logic [31:0]           loop_data_i
);

  (* ram_style = "distributed" *) cell_t scalars_q [ScalarRegisters];
  (* ram_style = "distributed" *) cell_t landed_q [ScalarRegisters];
  (* ram_style = "distributed" *) cell_t along_q [ScalarRegisters];
  logic [ScalarRegisters-1:0] scalar_used_q, scalar_landed_q, scalar_along_q;
  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      scalar_used_q <= '0;
    end else begin
      if (scalar_land_i) scalar_used_q[scalar_land_to_i] <= 1'b1;
      if (scalar_write_i) scalar_used_q[scalar_to_i] <= 1'b1;
      if (scalar_along_i) scalar_used_q[scalar_along_to_i] <= 1'b1;
    end
    if (scalar_land_i) begin
      landed_q[scalar_land_to_i] <= scalar_land_data_i;
      scalar_landed_q[scalar_land_to_i] <= 1'b1;
      scalar_along_q[scalar_land_to_i] <= 1'b0;
    end
    if (scalar_write_i) begin
      scalars_q[scalar_to_i] <= scalar_data_i;
      scalar_landed_q[scalar_to_i] <= 1'b0;
      scalar_along_q[scalar_to_i] <= 1'b0;
    end
    if (scalar_along_i) begin
      along_q[scalar_along_to_i] <= scalar_along_data_i;
      scalar_landed_q[scalar_along_to_i] <= 1'b0;
      scalar_along_q[scalar_along_to_i] <= 1'b1;
    end
  end
  for (genvar i = 0; i < 8; i++) begin : gen_scalar
    always_comb begin
      scalar_o[i] = scalars_q[scalar_i[i]];
      if (scalar_landed_q[scalar_i[i]]) scalar_o[i] = landed_q[scalar_i[i]];
      if (scalar_along_q[scalar_i[i]]) scalar_o[i] = along_q[scalar_i[i]];
      if (!scalar_used_q[scalar_i[i]]) scalar_o[i] = '0;
    end
  end

  for (genvar l = 0; l < int'(Columns); l++) begin : gen_lane
    (* ram_style = "distributed" *) cell_t lanes_q [1 << PlaceBits];
    (* ram_style = "distributed" *) cell_t lane_landed_q [1 << PlaceBits];
    logic [(1<<PlaceBits)-1:0] used_q, landed_last_q;
    always_ff @(posedge clk_i) begin
      if (clear_i) begin
        used_q <= '0;
      end else begin
        if (vector_land_i[l]) used_q[vector_land_to_i] <= 1'b1;
        if (vector_write_i[l]) used_q[vector_to_i] <= 1'b1;
      end
      if (vector_land_i[l]) landed_last_q[vector_land_to_i] <= 1'b1;
      if (vector_write_i[l]) landed_last_q[vector_to_i] <= 1'b0;
      if (vector_land_i[l]) lane_landed_q[vector_land_to_i] <= vector_land_data_i[l];
      if (vector_write_i[l]) lanes_q[vector_to_i] <= vector_data_i[l];
    end
    for (genvar i = 0; i < 3; i++) begin : gen_read
      assign vector_o[i][l] = !used_q[vector_i[i]] ? '0
                            : landed_last_q[vector_i[i]] ? lane_landed_q[vector_i[i]] : lanes_q[vector_i[i]];
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
