// Moves of long programs: those that stand in memory come into a buffer before they are wanted.
//
// A slot whose call has such a program is begun with the address and the number of its moves. From then on they are
// read in blocks of a step's moves, slot by slot in turn, until Blocks of the slot are here or asked for; a block that
// was given out makes room for the next. So a reader's delay shows only where a call is given out faster than its
// blocks come. A block counts when its last word has come without an error of memory: one with an error fails the
// call, and no further move of it is given out.
// What a cleared slot had asked for still comes, and is dropped; a call that begins in the slot meanwhile asks for its
// own when it has. Words are taken whenever they come.
//
// Latency: begin to command 2 cycles; a block's last word to ready_o 1 cycle; want_i to the first move 1 cycle.
// Throughput: a command every 2 cycles; a move each cycle, after each block one cycle without.
// Restrictions: want_slot_i stays while want_i is high. A slot is cleared before it is begun again, and nothing of it
// is wanted then. The reader answers commands in their order.

module unisono_program_fetch
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned MoveCount = ProgramMoves - LoadedMoves,   // of a program in memory, at most
  parameter int unsigned BlockMoves = MovesPerStep,
  parameter int unsigned Blocks = 4,                               // of each slot
  localparam int unsigned CountWidth = $clog2(MoveCount + 1)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // A call with a program in memory has come; one is over, whatever became of it.
  input  logic                  begin_valid_i,
  input  slot_t                 begin_slot_i,
  input  address_t              begin_address_i,
  input  logic [CountWidth-1:0] begin_moves_i,      // not 0
  input  logic                  clear_valid_i,
  input  slot_t                 clear_slot_i,

  // A slot's next block is here. It stays so until its last move is taken.
  output logic [Calls-1:0]      ready_o,

  // The next move of the slot that is wanted.
  input  logic                  want_i,
  input  slot_t                 want_slot_i,
  output logic                  out_valid_o,
  input  logic                  out_ready_i,
  output move_t                 out_move_o,

  // Memory.
  output logic                   read_command_valid_o,
  input  logic                   read_command_ready_i,
  output address_t               read_command_address_o,
  output segment_bytes_t         read_command_bytes_o,
  input  logic                   read_valid_i,
  output logic                   read_ready_o,
  input  logic [DataBytes*8-1:0] read_data_i,
  input  logic                   read_last_i,
  input  logic                   read_error_i,       // with the last word

  // Memory could not be read; for one cycle.
  output logic  fail_valid_o,
  output slot_t fail_slot_o
);

  if (BlockMoves < 2 || (BlockMoves & (BlockMoves - 1)) != 0 || Blocks < 2 || (Blocks & (Blocks - 1)) != 0)
  begin : gen_bad_blocks
    $error("unisono_program_fetch: BlockMoves and Blocks must be powers of two, at least 2");
  end
  if (MoveBytes % DataBytes != 0) begin : gen_bad_bytes
    $error("unisono_program_fetch: DataBytes must divide a move's bytes");
  end

  localparam int unsigned IndexWidth = $clog2(BlockMoves);
  localparam int unsigned BlockWidth = $clog2(Blocks);
  localparam int unsigned LeftWidth = CountWidth - IndexWidth + 1;
  localparam int unsigned BlockBytes = BlockMoves * MoveBytes;
  localparam int unsigned Words = MoveBytes / DataBytes;

  typedef logic [IndexWidth+BlockWidth-1:0] place_t;   // of a move, in what a slot has of the buffer
  typedef logic [IndexWidth-1:0] index_t;
  typedef logic [BlockWidth-1:0] block_t;
  typedef logic [BlockWidth:0] blocks_t;      // 0 to Blocks
  typedef logic [LeftWidth-1:0] left_t;

  // ------------------------------------------------------------------------------------------ the slots

  left_t [Calls-1:0] left_q;                  // blocks to ask for
  index_t [Calls-1:0] last_q;                 // number of the last block's last move
  block_t [Calls-1:0] next_q;                 // where the next block goes
  blocks_t [Calls-1:0] held_q;                // blocks asked for, and not given out
  blocks_t [Calls-1:0] coming_q;              // of these, or of calls before: not here yet
  blocks_t [Calls-1:0] full_q;                // blocks here
  logic [Calls-1:0] drop_q;                   // what comes is of a call that is over
  place_t [Calls-1:0] given_q;                // of the next move to give out

  logic asks, asked_q, comes, frees, fails;
  slot_t ask_slot, come_slot;

  logic [Calls-1:0] may_ask, unused_grant;
  for (genvar s = 0; s < int'(Calls); s++) begin : gen_may_ask
    assign may_ask[s] = left_q[s] != '0 && !held_q[s][BlockWidth] && !drop_q[s] &&
                        !(clear_valid_i && clear_slot_i == slot_t'(s));
    assign ready_o[s] = full_q[s] != '0;
  end
  unisono_round_robin #(.Requests(Calls)) u_turns (
    .clk_i, .rst_ni, .request_i(may_ask), .advance_i(asks), .grant_o(unused_grant), .index_o(ask_slot)
  );
  // The memory of addresses has one port to write.
  assign asks = may_ask != '0 && !asked_q && !begin_valid_i;

  for (genvar s = 0; s < int'(Calls); s++) begin : gen_slot
    logic begins, clears, asks_one, comes_one, frees_one;
    blocks_t coming_d;
    assign begins = begin_valid_i && begin_slot_i == slot_t'(s);
    assign clears = (clear_valid_i && clear_slot_i == slot_t'(s)) || (fails && come_slot == slot_t'(s));
    assign asks_one = asks && ask_slot == slot_t'(s);
    assign comes_one = comes && come_slot == slot_t'(s);
    assign frees_one = frees && want_slot_i == slot_t'(s);
    assign coming_d = coming_q[s] + blocks_t'(asks_one) - blocks_t'(comes_one);
    always_ff @(posedge clk_i) begin
      coming_q[s] <= coming_d;
      drop_q[s] <= (drop_q[s] || clears) && coming_d != '0;
      next_q[s] <= next_q[s] + block_t'(asks_one);
      if (begins) begin
        left_q[s] <= left_t'((32'(begin_moves_i) + BlockMoves - 1) >> IndexWidth);
        last_q[s] <= index_t'(begin_moves_i) - 1'b1;
        next_q[s] <= '0;
        held_q[s] <= '0;
        full_q[s] <= '0;
      end else begin
        left_q[s] <= left_q[s] - left_t'(asks_one);
        held_q[s] <= held_q[s] + blocks_t'(asks_one) - blocks_t'(frees_one);
        full_q[s] <= full_q[s] + blocks_t'(comes_one && !drop_q[s] && !fails) - blocks_t'(frees_one);
        // After an error, what has come before it is still given out.
        if (clears) left_q[s] <= '0;
        if (clear_valid_i && clear_slot_i == slot_t'(s)) full_q[s] <= '0;
      end
      if (!rst_ni) begin
        left_q[s] <= '0;
        held_q[s] <= '0;
        full_q[s] <= '0;
        coming_q[s] <= '0;
        drop_q[s] <= 1'b0;
      end
    end
  end

  // -------------------------------------------------------------------------------------------- asking

  (* ram_style = "distributed" *) address_t addresses [Calls];
  address_t ask_address, command_address_q;
  segment_bytes_t command_bytes_q;
  assign ask_address = addresses[ask_slot];
  always_ff @(posedge clk_i) begin
    if (begin_valid_i || asks) begin
      addresses[begin_valid_i ? begin_slot_i : ask_slot] <= begin_valid_i ? begin_address_i
                                                                          : ask_address + address_t'(BlockBytes);
    end
    if (!asked_q) begin
      command_address_q <= ask_address;
      command_bytes_q <= left_q[ask_slot] == left_t'(1) ? (segment_bytes_t'(last_q[ask_slot]) + 1'b1) * MoveBytes[13:0]
                                                        : segment_bytes_t'(BlockBytes);
    end
    if (!rst_ni) asked_q <= 1'b0;
    else asked_q <= asks || (asked_q && !read_command_ready_i);
  end
  assign read_command_valid_o = asked_q;
  assign read_command_address_o = command_address_q;
  assign read_command_bytes_o = command_bytes_q;

  // ------------------------------------------------------------------------------------------- coming

  // Whose the words are that come.
  logic owed, room;
  block_t come_block;
  logic [$clog2(Calls*Blocks+1)-1:0] unused_count;
  unisono_fifo #(.Width(SlotWidth + BlockWidth), .Depth(Calls * Blocks)) u_owed (
    .clk_i, .rst_ni, .in_valid_i(asks), .in_ready_o(room), .in_data_i({ask_slot, next_q[ask_slot]}),
    .out_valid_o(owed), .out_ready_i(comes), .out_data_o({come_slot, come_block}), .count_o(unused_count)
  );
  assign read_ready_o = owed;
  assign comes = owed && read_valid_i && read_last_i;
  assign fails = comes && read_error_i && !drop_q[come_slot];
  assign fail_valid_o = fails && !(clear_valid_i && clear_slot_i == come_slot);
  assign fail_slot_o = come_slot;

  // A move is written when its last word is here.
  logic whole;
  logic [MoveBytes*8-1:0] move_in;
  if (Words == 1) begin : gen_word
    assign whole = 1'b1;
    assign move_in = read_data_i;
  end else begin : gen_words
    logic [$clog2(Words)-1:0] word_q;
    logic [(Words-1)*DataBytes*8-1:0] words_q;
    assign whole = word_q == '1;
    assign move_in = {read_data_i, words_q};
    always_ff @(posedge clk_i) begin
      if (read_valid_i && read_ready_o) begin
        word_q <= word_q + 1'b1;
        words_q <= move_in[MoveBytes*8-1:DataBytes*8];
      end
      if (!rst_ni) word_q <= '0;
    end
  end

  index_t come_index_q;
  logic writes;
  assign writes = owed && read_valid_i && whole;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || comes) come_index_q <= '0;
    else if (writes) come_index_q <= come_index_q + 1'b1;
  end

  // ---------------------------------------------------------------------------------------- giving out

  logic have_q, reads, takes, block_ends;
  place_t given;
  blocks_t full;
  assign given = given_q[want_slot_i];
  assign full = full_q[want_slot_i];
  assign takes = out_valid_o && out_ready_i;
  // Of the last block, only what there is of it.
  assign block_ends = given[IndexWidth-1:0] == '1 ||
                      (left_q[want_slot_i] == '0 && held_q[want_slot_i] == blocks_t'(1) &&
                       given[IndexWidth-1:0] == last_q[want_slot_i]);
  assign frees = takes && block_ends;
  assign reads = want_i && (have_q ? takes && !block_ends : full != '0);
  assign out_valid_o = want_i && have_q;

  unisono_ram_sdp #(.Width(MoveBytes * 8), .Depth(Calls * Blocks * BlockMoves)) u_moves (
    .clk_i, .wr_en_i(writes), .wr_addr_i({come_slot, come_block, come_index_q}), .wr_data_i(move_in),
    .rd_en_i(reads), .rd_out_en_i(1'b1),
    .rd_addr_i({want_slot_i, given + place_t'(takes)}),
    .rd_data_o(out_move_o)
  );

  always_ff @(posedge clk_i) begin
    have_q <= rst_ni && (reads || (want_i && have_q && !takes));
    if (takes) given_q[want_slot_i] <= given + 1'b1;
    if (begin_valid_i) given_q[begin_slot_i] <= '0;
  end

  // ---------------------------------------------------------------------------------------- assertions

  logic unused;
  assign unused = ^{unused_grant, unused_count, room};

`ifndef SYNTHESIS
  command_held :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      read_command_valid_o && !read_command_ready_i |=> read_command_valid_o && $stable(read_command_address_o) &&
      $stable(read_command_bytes_o));
  room_for_every_block :
  assert property (@(posedge clk_i) disable iff (!rst_ni) asks |-> room);
  words_that_were_asked_for :
  assert property (@(posedge clk_i) disable iff (!rst_ni) read_valid_i |-> owed);
  a_block_is_whole_moves :
  assert property (@(posedge clk_i) disable iff (!rst_ni) comes |-> whole);
  cleared_before_begin :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      begin_valid_i |-> begin_moves_i != '0 && left_q[begin_slot_i] == '0 && full_q[begin_slot_i] == '0);
  one_slot_is_wanted :
  assert property (@(posedge clk_i) disable iff (!rst_ni) want_i |=> !want_i || $stable(want_slot_i));
  nothing_wanted_of_a_cleared_slot :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      want_i && clear_valid_i |-> want_slot_i != clear_slot_i);
`endif

endmodule
