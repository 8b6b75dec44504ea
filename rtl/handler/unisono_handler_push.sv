// What put and streamout push to the output: up to 64 bytes at a time, while there is room.
//
// Combinational but for the bytes that have been written. Throughput: a push per cycle; 16 lanes of 8 bytes are two.
module unisono_handler_push
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned  Columns = 16,
  localparam int unsigned Beats = 16 / Columns,
  localparam int unsigned BeatBits = Beats > 1 ? $clog2(Beats) : 1,
  localparam int unsigned Half = Columns > 1 ? Columns / 2 : 1
) (
  input  logic                clk_i,

  input  logic                clear_i,  // nothing has been written
  input  logic                put_i,  // a scalar, of an instruction's lanes otherwise
  input  element_e            element_i,
  input  logic                go_i,  // it writes
  input  logic [6:0]          count_i,  // of its pushes, this one's
  input  cell_t               scalar_i,
  input  cell_t               second_i,
  input  cell_t [Columns-1:0] vector_i,  // its beat's
  output logic [BeatBits-1:0] beat_o,
  output logic                done_o,  // with this push
  output logic                beyond_o,  // but there is no room for all of it
  output logic [16:0]         written_o,

  output logic                push_valid_o,
  input  logic                push_ready_i,
  output logic [6:0]          push_bytes_o,
  output logic [511:0]        push_data_o
);

  logic [1:0] size;
  logic [4:0] wanted, allowed, fits;  // lanes in all
  logic [16:0] room;
  logic [4:0] at;  // first lane of this push
  logic [4:0] pushed, group;
  assign size = size_of(element_i);
  assign wanted = put_i ? 5'd1 : second_i > 64'd16 ? 5'd16 : second_i[4:0];
  // Lanes that are written at once: those of 64 bytes.
  assign group = Columns > 8 && size != 2'd3 ? 5'd16 : 5'(Columns > 8 ? 8 : Columns);
  assign at = 5'(32'(count_i) * 32'(group));
  assign room = (17'(MostOutputBytes) - written_o) >> size;
  assign fits = room > 17'd16 ? 5'd16 : room[4:0];
  assign allowed = wanted - at > fits ? fits : wanted - at;  // of those to come
  assign pushed = allowed > group ? group : allowed;
  assign beat_o = BeatBits'(32'(at) / Columns);
  assign done_o = push_ready_i && allowed == pushed;
  assign beyond_o = wanted - at > fits;

  cell_t [Columns-1:0] leaving;
  assign push_valid_o = go_i;
  assign push_bytes_o = 7'(7'(pushed) << size);
  always_comb begin
    leaving = vector_i;
    if (put_i) leaving[0] = scalar_i;
    else if (Columns > 8 && count_i[0]) leaving[Half-1:0] = vector_i[Columns-1-:Half];
    push_data_o = 512'(packed_of((Lanes * CellBits)'(leaving), size));
  end

  always_ff @(posedge clk_i) begin
    if (clear_i) written_o <= '0;
    else if (push_valid_o && push_ready_i) written_o <= written_o + 17'(push_bytes_o);
  end

endmodule
