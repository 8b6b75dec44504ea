// Keeps programs, and gives one of them out: its lists, then its moves, a step at a time.
//
// A step is so many moves, and the words of lists that come before them; all lists belong to the first step. A move
// goes when the words that stand before it have gone. Moves beyond those that are kept here come from memory, one
// after the other, from who fetches them. The step is told when what was given out has been counted.
//
// Latency: the first words are fetched in the cycle before the program is settled, so that the first move goes in the
// first cycle of a step; a step is told 3 cycles after its last word. Throughput: a move and a word of a list per
// cycle. Restrictions: what is given out is not written meanwhile.

module unisono_replay_give
  import unisono_spec_pkg::*;
  import unisono_cpu_pkg::*;
#(
  parameter int unsigned Entries = 16,
  parameter int unsigned Programs = 8,
  parameter int unsigned MoveCount = 32,           // of a program, here
  parameter int unsigned MostMoves = 4096,
  parameter int unsigned ListCount = 64,
  localparam int unsigned RestWidth = $clog2(MostMoves - MoveCount + 1),
  localparam int unsigned EntryWidth = $clog2(Entries),
  localparam int unsigned IndexWidth = $clog2(MoveCount),
  localparam int unsigned ListWidth = $clog2(ListCount),
  localparam int unsigned ProgramWidth = Programs > 1 ? $clog2(Programs) : 1,
  localparam int unsigned MovesWidth = $clog2(MostMoves + 1)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // What is kept: a word of a list, a move and how many words come before it, how many there are, and where the moves
  // are that stand in memory.
  input  logic                    list_write_i,
  input  logic [EntryWidth-1:0]   list_entry_i,
  input  logic [ListWidth-1:0]    list_index_i,
  input  logic [23:0]             list_word_i,
  input  logic                    move_write_i,
  input  logic [EntryWidth-1:0]   move_entry_i,
  input  logic [IndexWidth-1:0]   move_index_i,
  input  logic [ListWidth:0]      move_lists_i,
  input  move_t                   move_i,
  input  logic                    length_write_i,
  input  logic [EntryWidth-1:0]   length_entry_i,
  input  logic [MovesWidth-1:0]   length_moves_i,
  input  logic [ListWidth:0]      length_lists_i,
  input  logic                    rest_write_i,
  input  logic [ProgramWidth-1:0] rest_slot_i,
  input  logic [63:0]             rest_address_i,

  // Which one: the entry that is looked at (from the first cycle of the start on), or the call of the item at hand.
  input  logic                    idle_i,
  input  logic                    starts_i,
  input  logic                    looks_i,
  input  logic                    compares_i,      // the first words are read
  input  logic                    settles_i,       // from the next cycle on it is given out from its beginning
  input  logic                    replays_i,       // and it is known
  input  logic                    plays_i,
  input  logic [EntryWidth-1:0]   entry_i,
  input  logic [EntryWidth-1:0]   work_entry_i,
  input  logic [MovesWidth-1:0]   work_count_i,    // moves that have been given out
  output logic [MovesWidth-1:0]   count_o,

  // What is given out. A list waits while another word goes, a step while another one is told.
  output logic                    valid_o,
  output logic                    end_o,
  output move_t                   move_o,
  input  logic                    moves_i,         // it is taken
  output logic                    list_valid_o,
  output logic [ListWidth:0]      list_index_o,
  output logic [23:0]             list_word_o,
  input  logic                    list_taken_i,
  output logic                    step_o,
  input  logic                    step_taken_i,

  // Moves in memory.
  output logic                    rest_begin_valid_o,
  output logic [63:0]             rest_begin_address_o,
  output logic [RestWidth-1:0]    rest_begin_moves_o,
  output logic                    rest_want_o,
  input  logic                    rest_valid_i,
  output logic                    rest_ready_o,
  input  move_t                   rest_move_i
);

  typedef logic [EntryWidth-1:0] entry_t;
  typedef logic [MovesWidth-1:0] moves_t;
  typedef logic [RestWidth-1:0] rest_t;
  typedef logic [ListWidth:0] lists_t;

  typedef struct packed {
    moves_t moves;
    lists_t lists;
  } length_t;

  typedef struct packed {
    lists_t lists;                         // that must have been given out before it
    move_t move;
  } kept_t;

  (* ram_style = "distributed" *) length_t lengths [Entries];

  always_ff @(posedge clk_i) begin
    if (length_write_i) lengths[length_entry_i] <= '{moves: length_moves_i, lists: length_lists_i};
  end

  lists_t sent_q;
  // The program at hand, and the next of its moves.
  entry_t play_entry_q;
  moves_t play_count_q;
  length_t length_q;
  logic [1:0] settle_q;                    // cycles since the last beat of the step, up to 3
  moves_t left_q;                          // of the step


  always_ff @(posedge clk_i) begin
    if (looks_i) begin
      play_entry_q <= entry_i;
      play_count_q <= '0;
      length_q <= lengths[entry_i];
    end else if (idle_i) begin
      play_entry_q <= work_entry_i;
      play_count_q <= work_count_i;
      length_q <= lengths[work_entry_i];
    end else if (moves_i && !end_o) begin
      play_count_q <= play_count_q + 1'b1;
    end
  end

  // Words stand at the memories' outputs before they are wanted.
  kept_t kept;
  logic read_first, read_move, have_q;
  logic [IndexWidth-1:0] read_index;
  unisono_ram_sdp #(.Width($bits(kept_t)), .Depth(Entries * MoveCount)) u_moves (
    .clk_i, .wr_en_i(move_write_i), .wr_addr_i({move_entry_i, move_index_i}),
    .wr_data_i({move_lists_i, move_i}),
    .rd_en_i(read_move), .rd_out_en_i(1'b1),
    .rd_addr_i({read_first ? entry_i : play_entry_q, read_index}), .rd_data_o(kept)
  );

  logic read_list, have_list_q, list_left, step_ends;
  logic [ListWidth-1:0] read_list_index;
  logic [23:0] list_kept;
  unisono_ram_sdp #(.Width(24), .Depth(Entries * ListCount)) u_lists (
    .clk_i, .wr_en_i(list_write_i), .wr_addr_i({list_entry_i, list_index_i}), .wr_data_i(list_word_i),
    .rd_en_i(read_list), .rd_out_en_i(1'b1),
    .rd_addr_i({read_first ? entry_i : play_entry_q, read_list_index}), .rd_data_o(list_kept)
  );

  // Those in memory. The call is made known in the first cycle in which it is given out.
  (* ram_style = "distributed" *) logic [63:0] rests [Programs];
  logic rest, begins_play_q;
  always_ff @(posedge clk_i) begin
    if (rest_write_i) rests[rest_slot_i] <= rest_address_i;
    begins_play_q <= rst_ni && replays_i;
  end
  assign rest_begin_valid_o = begins_play_q && length_q.moves > moves_t'(MoveCount);
  assign rest_begin_address_o = rests[~play_entry_q[ProgramWidth-1:0]];
  assign rest_begin_moves_o = rest_t'(length_q.moves - moves_t'(MoveCount));

  assign rest = play_count_q >= moves_t'(MoveCount);
  assign rest_want_o = plays_i && rest;
  assign rest_ready_o = rest_want_o && moves_i && !end_o;
  assign end_o = play_count_q == length_q.moves;
  assign list_left = sent_q != length_q.lists;
  assign valid_o = plays_i && settle_q == '0 &&
                     (end_o ? !list_left : left_q != '0 && (rest ? rest_valid_i : have_q && kept.lists <= sent_q));
  assign list_valid_o = plays_i && have_list_q && list_left && !list_taken_i;

  // The first word of each is fetched while the arguments are compared; in a later step, when it begins.
  assign read_first = compares_i || starts_i;
  assign read_move = read_first || (plays_i && (!have_q || moves_i));
  assign read_index = read_first ? '0 : play_count_q[IndexWidth-1:0] + IndexWidth'(moves_i);
  assign read_list = read_first || list_valid_o;
  assign read_list_index = read_first ? '0 : sent_q[ListWidth-1:0] + 1'b1;

  // All lists belong to the first step. What was given out is counted in the window's room when the step is done.
  assign step_ends = end_o ? moves_i : left_q == '0 && !list_left;
  assign step_o = plays_i && settle_q == 2'b11 && !step_taken_i;

  always_ff @(posedge clk_i) begin
    if (!plays_i) begin
      have_q <= settles_i;
      have_list_q <= settles_i;
      settle_q <= '0;
      left_q <= moves_t'(MovesPerStep);
      // Of a later step, all lists have been given out.
      sent_q <= settles_i ? '0 : lengths[work_entry_i].lists;
    end else begin
      if (read_move) have_q <= 1'b1;
      if (list_valid_o) sent_q <= sent_q + 1'b1;
      if (moves_i && !end_o) left_q <= left_q - 1'b1;
      if (settle_q == '0 ? step_ends : settle_q != 2'b11) settle_q <= settle_q + 2'd1;
    end
  end

  assign count_o      = play_count_q;
  assign move_o       = rest ? rest_move_i : kept.move;
  assign list_index_o = sent_q;
  assign list_word_o  = list_kept;

endmodule
