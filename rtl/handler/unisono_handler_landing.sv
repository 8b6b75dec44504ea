// What a load or take has read lands in registers, a cycle after its address, while the next instruction goes.
//
// An instruction that reads the register waits for this cycle. Latency: 1 cycle. Throughput: a beat per cycle.
module unisono_handler_landing
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned Columns = 16,
  localparam int unsigned Beats = 16 / Columns,
  localparam int unsigned BeatBits = Beats > 1 ? $clog2(Beats) : 1,
  localparam int unsigned Window = Columns > 8 ? 8 * Columns : 64
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                fetch_i,  // memory or payload is asked
  input  logic                vector_i,  // lanes of it
  input  element_e            element_i,
  input  logic [5:0]          to_i,  // for this register
  input  logic [BeatBits-1:0] beat_i,
  input  logic [4:0]          present_i,  // lanes that are there
  input  logic [Window*8-1:0] read_i,  // a cycle later
  input  instruction_t        now_i,  // the instruction of this cycle
  output logic                waits_o,  // reads what lands

  output logic                scalar_o,  // lands
  output logic [Columns-1:0]  lanes_o,  // land
  output logic [5:0]          to_o,
  output logic [BeatBits-1:0] beat_o,
  output cell_t [Columns-1:0] elements_o
);

  logic land_q, vector_q;
  logic [1:0] size_q;
  logic [Columns-1:0] lanes_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) land_q <= 1'b0;
    else land_q <= fetch_i;
  end
  always_ff @(posedge clk_i) begin
    vector_q <= vector_i;
    size_q <= size_of(element_i);
    to_o <= to_i;
    beat_o <= beat_i;
    for (int unsigned l = 0; l < Columns; l++) lanes_q[l] <= 32'(beat_i) * Columns + l < 32'(present_i);
  end
  assign waits_o = land_q && reads(now_i, vector_q, to_o);
  assign scalar_o = land_q && !vector_q;
  assign lanes_o = land_q && vector_q ? lanes_q : '0;

  always_comb begin
    for (int unsigned l = 0; l < Columns; l++) begin
      case (size_q)
        2'd0: elements_o[l] = 64'(read_i[8*l+:8]);
        2'd1: elements_o[l] = 64'(read_i[16*l+:16]);
        2'd2: elements_o[l] = 64'(read_i[32*l+:32]);
        default: elements_o[l] = read_i[64*l+:64];
      endcase
    end
  end

endmodule
