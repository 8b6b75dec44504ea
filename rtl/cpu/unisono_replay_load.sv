// Takes the programs that the host loads, word by word.
//
// A load begins with its slot, whose entry is then of no call any more; lists and moves follow, and where the moves
// are that do not fit here; the signature ends it. A load that is wrong (no such slot, too long, in use, half a move)
// stays bad until the next one begins, and loads nothing.
//
// Latency: what a word means is told in its cycle. Throughput: a word per cycle, unless the microcontroller keeps
// something.

module unisono_replay_load
  import unisono_cpu_pkg::*;
#(
  parameter int unsigned Entries = 16,
  parameter int unsigned Programs = 8,
  parameter int unsigned MoveCount = 32,       // of a program, here
  parameter int unsigned MostMoves = 4096,
  parameter int unsigned ListCount = 64,
  localparam int unsigned RestWidth = $clog2(MostMoves - MoveCount + 1),
  localparam int unsigned EntryWidth = $clog2(Entries),
  localparam int unsigned ProgramWidth = Programs > 1 ? $clog2(Programs) : 1,
  localparam int unsigned MovesWidth = $clog2(MostMoves + 1),
  localparam int unsigned ListWidth = $clog2(ListCount)
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic                    blocked_i,           // what may be kept goes first
  input  logic                    program_valid_i,
  output logic                    program_ready_o,
  input  logic [2:0]              program_word_i,
  input  logic [31:0]             program_data_i,
  output logic [31:0]             program_state_o,

  output logic [EntryWidth-1:0]   entry_o,             // of the load at hand, that begins in this cycle or before
  input  logic                    in_use_i,            // it is being given out
  output logic                    begins_o,
  output logic                    list_o,              // a word of a list
  output logic                    move_o,              // the last word of a move: the others are words_o
  output logic                    loads_o,             // the program is there
  output logic [14:0][31:0]       words_o,
  output logic [ProgramWidth-1:0] slot_o,
  output logic [MovesWidth-1:0]   moves_o,             // that have come
  output logic [ListWidth:0]      lists_o,
  output logic [RestWidth-1:0]    rest_o,              // that stand in memory
  output logic [63:0]             rest_address_o,
  output logic [Programs-1:0]     pinned_o,            // slots that have had a program, and those that have one
  output logic [Programs-1:0]     loaded_o
);

  localparam int unsigned IndexWidth = $clog2(MoveCount);

  typedef logic [EntryWidth-1:0] entry_t;
  typedef logic [MovesWidth-1:0] moves_t;
  typedef logic [RestWidth-1:0] rest_t;
  typedef logic [ListWidth:0] lists_t;

  logic lists_more, moves_more, load_odd, load_bad_q;
  logic [ProgramWidth-1:0] load_slot, load_slot_q;
  entry_t load_entry;
  moves_t load_moves_q;
  lists_t load_lists_q;
  logic [3:0] load_word_q;
  logic [14:0][31:0] load_words_q;
  rest_t load_rest_q;
  logic [1:0][31:0] load_address_q;
  logic begins, loads;
  logic [Programs-1:0] pinned_q, loaded_q;

  assign load_slot = begins ? program_data_i[ProgramWidth-1:0] : load_slot_q;
  assign load_entry = ~entry_t'(load_slot);
  assign program_ready_o = !blocked_i;
  assign begins = program_valid_i && program_ready_o && program_word_i == 3'd0;
  assign lists_more = program_valid_i && program_ready_o && program_word_i == 3'd1 && !load_bad_q &&
                      !load_lists_q[ListWidth];
  assign moves_more = program_valid_i && program_ready_o && program_word_i == 3'd2 && !load_bad_q &&
                      load_word_q == '1 && !load_moves_q[IndexWidth];
  // In memory there are only moves that find no place here.
  assign load_odd = load_word_q != '0 || (load_rest_q != '0 && !load_moves_q[IndexWidth]);
  assign loads = program_valid_i && program_ready_o && program_word_i == 3'd3 && !load_bad_q && !load_odd;

  always_ff @(posedge clk_i) begin
    if (begins) begin
      load_slot_q <= program_data_i[ProgramWidth-1:0];
      load_moves_q <= '0;
      load_lists_q <= '0;
      load_word_q <= '0;
      load_rest_q <= '0;
    end
    if (program_valid_i && program_ready_o) begin
      if (program_word_i == 3'd2) begin
        load_word_q <= load_word_q + 4'd1;
        if (load_word_q != '1) load_words_q[load_word_q] <= program_data_i;
      end
      if (program_word_i inside {3'd4, 3'd5}) load_address_q[program_word_i[0]] <= program_data_i;
      if (program_word_i == 3'd6) load_rest_q <= rest_t'(program_data_i);
    end
    if (lists_more) load_lists_q <= load_lists_q + 1'b1;
    if (moves_more) load_moves_q <= load_moves_q + 1'b1;
    if (!rst_ni) begin
      load_bad_q <= 1'b1;
      pinned_q <= '0;
      loaded_q <= '0;
    end else if (begins) begin
      load_bad_q <= program_data_i >= 32'(Programs) || in_use_i;
      if (program_data_i < 32'(Programs) && !in_use_i) begin
        pinned_q[program_data_i[ProgramWidth-1:0]] <= 1'b1;
        loaded_q[program_data_i[ProgramWidth-1:0]] <= 1'b0;
      end
    end else if (program_valid_i && program_ready_o) begin
      if ((program_word_i == 3'd1 && load_lists_q[ListWidth]) ||
          (program_word_i == 3'd2 && load_moves_q[IndexWidth]) || (program_word_i == 3'd3 && load_odd) ||
          (program_word_i == 3'd6 && program_data_i > MostMoves - MoveCount)) begin
        load_bad_q <= 1'b1;
      end
      if (loads) loaded_q[load_slot_q] <= 1'b1;
    end
  end

  assign entry_o         = load_entry;
  assign begins_o        = begins;
  assign list_o          = lists_more;
  assign move_o          = moves_more;
  assign loads_o         = loads;
  assign words_o         = load_words_q;
  assign slot_o          = load_slot_q;
  assign moves_o         = load_moves_q;
  assign lists_o         = load_lists_q;
  assign rest_o          = load_rest_q;
  assign rest_address_o  = load_address_q;
  assign pinned_o        = pinned_q;
  assign loaded_o        = loaded_q;
  assign program_state_o = {load_bad_q, 31'(loaded_q)};

endmodule
