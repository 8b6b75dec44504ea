// Microcode memory: programs that the microcontroller has made before are given out again without it.
//
// Stands between the call front end and the microcontroller. While the microcontroller makes the moves of a
// call, they are kept here, with what decides about them: the arguments and the state of the communicator.
// A call with the same arguments, on buffers at least as long, gets its context and its moves from here. Any
// other call goes on to the microcontroller. Collectives of a communicator are numbered here, because both
// ways count.
//
// Starts take effect in their order: a call is replayed only when the microcontroller has begun the ones
// before it.
// A program that is longer than MoveCount moves or ListCount words of lists is not kept, and one whose call
// fails neither.
// Programs of the user are loaded by the host, and called by their slot. Each takes an entry for good. What they have
// more than MoveCount moves stands in memory: unisono_program_fetch is told of it when such a call begins, and gives
// it move by move. While a call's next moves are not there, waits_o asks that it is not given an item.
//
// While nothing is to be done, the descriptor that the front end stores is looked at as it comes, so that a call that is
// known is given out as soon as it starts. This concerns the descriptor that came last alone; the others are read again.
//
// Latency: from a start item to the first move 1 cycle, if its descriptor came last and it is known; else 5, also when
// the call turns out to be new and the item goes to the microcontroller; other items pass within the cycle. Throughput:
// one move per cycle.
// Restrictions: a step is MovesPerStep moves; an item comes when the window has room for it.

module unisono_replay
  import unisono_spec_pkg::*;
  import unisono_cpu_pkg::*;
#(
  parameter int unsigned Communicators = 32,
  parameter int unsigned ListWords = 1024,    // of the pool of a slot
  parameter int unsigned Entries = 16,
  parameter int unsigned Programs = LoadedPrograms,
  parameter int unsigned MoveCount = LoadedMoves,
  parameter int unsigned MostMoves = ProgramMoves,     // of a program that is loaded
  parameter int unsigned ListCount = LoadedWords,
  localparam int unsigned RestWidth = $clog2(MostMoves - MoveCount + 1),
  localparam int unsigned PlaceWidth = $clog2(Communicators) + 3,
  localparam int unsigned ListAddressWidth = $clog2(ListWords)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Call front end.
  input  logic                        work_valid_i,
  output logic                        work_ready_o,
  input  work_t                       work_i,
  output logic                        step_valid_o,
  output logic [SlotWidth-1:0]        step_slot_o,
  // Rows; in the next cycle come the four that stand with one.
  output logic [SlotWidth+3:0]        descriptor_address_o,
  input  logic [3:0][63:0]            descriptor_quad_i,
  // Descriptors as they are stored: four rows at a time, 0 to 3 of these. And whether the start item's is the one that
  // came last, whole.
  input  logic                        store_valid_i,
  input  logic [1:0]                  store_quad_i,
  input  logic [3:0][63:0]            store_data_i,
  input  logic                        work_newest_i,
  output logic [PlaceWidth-1:0]       communicator_address_o,
  input  logic [31:0]                 communicator_data_i,

  // A call has ended, or failed; nothing of its slot is under way here then.
  input  logic                        clear_valid_i,
  input  logic [SlotWidth-1:0]        clear_slot_i,

  // Engine.
  output logic                        move_valid_o,
  input  logic                        move_ready_i,
  output move_t                       move_o,
  output logic [SlotWidth-1:0]        move_slot_o,
  output logic                        move_end_o,
  output logic                        list_valid_o,
  output logic [SlotWidth-1:0]        list_slot_o,
  output logic [ListAddressWidth-1:0] list_index_o,
  output logic [23:0]                 list_word_o,
  output logic                        context_valid_o,
  output logic [SlotWidth-1:0]        context_slot_o,
  output context_t                    context_o,

  // Microcontroller: the same again.
  output logic                        cpu_work_valid_o,
  input  logic                        cpu_work_ready_i,
  output work_t                       cpu_work_o,
  input  logic                        cpu_step_valid_i,
  input  logic [SlotWidth-1:0]        cpu_step_slot_i,
  input  logic [SlotWidth+3:0]        cpu_descriptor_address_i,
  input  logic [PlaceWidth-1:0]       cpu_communicator_address_i,
  input  logic                        cpu_move_valid_i,
  output logic                        cpu_move_ready_o,
  input  move_t                       cpu_move_i,
  input  logic [SlotWidth-1:0]        cpu_move_slot_i,
  input  logic                        cpu_move_end_i,
  input  logic                        cpu_list_valid_i,
  input  logic [SlotWidth-1:0]        cpu_list_slot_i,
  input  logic [ListAddressWidth-1:0] cpu_list_index_i,
  input  logic [23:0]                 cpu_list_word_i,
  input  logic                        cpu_context_valid_i,
  input  logic [SlotWidth-1:0]        cpu_context_slot_i,
  input  context_t                    cpu_context_i,
  input  logic                        cpu_fail_valid_i,
  input  logic [SlotWidth-1:0]        cpu_fail_slot_i,

  // The host: words of ExchangePrograms.
  input  logic                        program_valid_i,
  output logic                        program_ready_o,
  input  logic [2:0]                  program_word_i,
  input  logic [31:0]                 program_data_i,
  output logic [31:0]                 program_state_o,
  output logic [Programs-1:0]         program_loaded_o,

  // Moves that stand in memory; see unisono_program_fetch.
  output logic                        rest_begin_valid_o,
  output logic [SlotWidth-1:0]        rest_begin_slot_o,
  output logic [63:0]                 rest_begin_address_o,
  output logic [RestWidth-1:0]        rest_begin_moves_o,
  input  logic [Slots-1:0]            rest_ready_i,
  output logic                        rest_want_o,
  output logic [SlotWidth-1:0]        rest_want_slot_o,
  input  logic                        rest_valid_i,
  output logic                        rest_ready_o,
  input  move_t                       rest_move_i,
  // Of these slots, an item would find no moves yet.
  output logic [Slots-1:0]            waits_o,

  // A call is given out from here.
  output logic                        replayed_o
);

  if (Entries < 2 || (Entries & (Entries - 1)) != 0 || Entries > 256) begin : gen_bad_entries
    $error("unisono_replay: Entries must be a power of two from 2 to 256");
  end
  if (Programs < 1 || Programs > 31 || Entries < 2 * Programs || (Programs & (Programs - 1)) != 0) begin : gen_bad_programs
    $error("unisono_replay: Programs must be a power of two, and at most half of the entries");
  end
  if ((MoveCount & (MoveCount - 1)) != 0 || MoveCount < MovesPerStep || ListCount > ListWords ||
      (ListCount & (ListCount - 1)) != 0) begin : gen_bad_counts
    $error("unisono_replay: MoveCount and ListCount must be powers of two, at least a step, at most a pool");
  end

  if (MostMoves <= MoveCount || MoveCount % MovesPerStep != 0) begin : gen_bad_rest
    $error("unisono_replay: MostMoves must be more than MoveCount, which must be whole steps");
  end

  localparam int unsigned EntryWidth = $clog2(Entries);
  localparam int unsigned IndexWidth = $clog2(MoveCount);
  localparam int unsigned ListWidth = $clog2(ListCount);
  localparam int unsigned CommunicatorWidth = $clog2(Communicators);
  localparam int unsigned ProgramWidth = Programs > 1 ? $clog2(Programs) : 1;
  // Of the state of a communicator, what tells a new one from one that has changed.
  localparam int unsigned Life = CommunicatorCrowded + 1;

  typedef logic [EntryWidth-1:0] entry_t;
  typedef logic [7:0] mark_t;
  typedef logic [$clog2(MostMoves+1)-1:0] moves_t;
  typedef logic [RestWidth-1:0] rest_t;
  typedef logic [ListWidth:0] lists_t;
  typedef logic [SlotWidth-1:0] slot_t;

  // What decides which moves a call has.
  typedef struct packed {
    logic [63:0] count;
    logic [31:0] root;
    logic [31:0] communicator;
    logic [DescriptorFlags-1:0] flags;
    logic [31:0] head;
    logic [31:0] state;
  } key_t;

  // Bytes of src, dst, scratch and params. The call front end takes none with more bits.
  typedef logic [3:0][47:0] sizes_t;

  typedef struct packed {
    moves_t moves;
    lists_t lists;
  } length_t;

  // --------------------------------------------------------------------------------------------- state

  typedef enum logic [1:0] {
    StIdle,
    StLook,
    StPass,    // the start goes to the microcontroller
    StPlay
  } state_e;

  state_e state_q;
  logic [2:0] look_q;                      // cycles since the item came
  slot_t slot_q;

  logic [Slots-1:0] playing_q, recording_q;
  entry_t [Slots-1:0] entry_of_q;
  moves_t [Slots-1:0] count_q;             // moves given out, or kept
  lists_t [Slots-1:0] lists_q;             // words of lists kept

  logic [Entries-1:0] known_q;

  // The microcontroller has a start whose first move is still to come. (A first step without moves is over, too: the
  // next one would wait for this slot's turn, behind the starts that wait here.)
  logic starting_q;
  slot_t starting_slot_q;

  logic is_start, is_more, is_control, looks, plays_on;
  assign is_start = work_valid_i && work_i.kind == WorkStart;
  assign is_more = work_valid_i && work_i.kind == WorkMore;
  assign is_control = work_valid_i && work_i.kind == WorkControl;
  assign looks = state_q == StIdle && is_start && !starting_q;
  assign plays_on = state_q == StIdle && is_more && playing_q[work_i.slot];

  // ---------------------------------------------------------------------------------------------- look

  // Rows 0 to 3 come first: arguments and tag. Then rows 4 to 7, or 12 to 15 of a call of a program, with its slot; then
  // rows 8 to 11.
  localparam logic [2:0] LookKey = 3'd1;
  localparam logic [2:0] LookTable = 3'd2;
  localparam logic [2:0] LookCompare = 3'd3;
  localparam logic [2:0] LookDecide = 3'd4;

  // What is stored, while nothing else is at hand: the next four rows of the descriptor that came last. `ahead_q` says
  // how many fours were caught, the last of `ready_q` that they have been compared with what is kept, and the
  // communicator's state too.
  logic catches;
  logic [2:0] ahead_q, ready_q;
  logic fast;
  logic [3:0][63:0] quad;                  // the rows at hand: read, or being stored
  assign catches = store_valid_i && state_q == StIdle && !starting_q && !is_start &&
                   (store_quad_i == 2'd0 || ahead_q == 3'(store_quad_i));
  assign quad = state_q == StLook ? descriptor_quad_i : store_data_i;

  key_t key_q, there_q;
  sizes_t sizes_q, sizes_there_q;
  logic [1:0][47:0] sizes_last, sizes_upper;   // of two regions, as they come; of the last two
  assign sizes_last = {quad[3][47:0], quad[1][47:0]};
  assign sizes_upper = state_q == StLook ? sizes_last : sizes_q[3:2];
  logic [31:0] tag_q;
  entry_t entry_q;
  logic exists_q, match_q, fits_q, known_there_q, taken_q;

  // Counts are often multiples of powers of two, and roots small.
  key_t key_in;
  logic [15:0] mixed;
  entry_t home, hashed;
  mark_t mark_in, mark_q;
  assign key_in = '{count: quad[3], root: quad[1][63:32],
                    communicator: quad[1][31:0], flags: quad[0][32+:DescriptorFlags],
                    head: quad[0][31:0], state: '0};
  assign mixed = key_in.count[15:0] ^ key_in.count[31:16] ^ key_in.root[15:0] ^
                 {key_in.head[3:0], key_in.head[7:4], key_in.head[19:16], key_in.head[27:24]} ^
                 {key_in.communicator[7:0], 8'd0};
  always_comb begin
    hashed = '0;
    for (int i = 0; i < 16; i += int'(EntryWidth)) begin
      hashed ^= entry_t'(mixed >> i);
    end
  end

  // Programs of the user have the upper entries, from the last one down. An entry that once had one is out of reach
  // for calls; they find another in the lower half.
  logic is_program;
  logic [ProgramWidth-1:0] program_slot;
  logic [Programs-1:0] pinned_q, loaded_q;
  logic [EntryWidth-1:0] from_last;
  assign is_program = key_q.head[7:0] == CollectiveProgram;
  assign program_slot = key_q.count[32+:ProgramWidth];

  // A call has two entries to choose from, which differ in the upper bit, so that two calls of one hash do not drive
  // each other out. Each has a mark, another hash of the arguments of whose program is in it or comes into it: the call
  // looks at the entry with its mark, or else at the one of the two that was not looked at last. That is a guess; what is
  // given out was compared in whole.
  mark_t [Entries-1:0] marks_q;
  logic [Entries/2-1:0] last_q;
  logic [EntryWidth-2:0] pair;
  assign pair = hashed[EntryWidth-2:0];
  assign mark_in = {key_in.head[3:0] ^ key_in.communicator[3:0], key_in.root[3:0] ^ key_in.head[19:16]} ^
                   key_in.count[7:0] ^ {key_in.count[11:8], key_in.count[15:12]} ^ {4'd0, key_in.flags[3:0]};
  assign from_last = ~{1'b1, pair};
  always_comb begin
    home = {!last_q[pair], pair};
    if (marks_q[{1'b1, pair}] == mark_in) home = {1'b1, pair};
    if (marks_q[{1'b0, pair}] == mark_in) home = {1'b0, pair};
    if (32'(from_last) < Programs && pinned_q[from_last[ProgramWidth-1:0]]) home = {1'b0, pair};
  end

  // A program that is given out or kept stays where it is, and so does one whose slot the host began to load just now.
  logic taken;
  logic [EntryWidth-1:0] entry_from_last;
  assign entry_from_last = ~entry_q;
  always_comb begin
    taken = 32'(entry_from_last) < Programs && pinned_q[entry_from_last[ProgramWidth-1:0]];
    for (int s = 0; s < int'(Slots); s++) begin
      taken |= (playing_q[s] || recording_q[s]) && entry_of_q[s] == entry_q;
    end
  end

  (* ram_style = "distributed" *) key_t keys [Entries];
  (* ram_style = "distributed" *) sizes_t sizes [Entries];
  (* ram_style = "distributed" *) context_t contexts [Entries];
  (* ram_style = "distributed" *) length_t lengths [Entries];

  always_ff @(posedge clk_i) begin
    if (look_q == LookKey || (catches && store_quad_i == 2'd0)) begin
      key_q <= key_in;
      tag_q <= quad[2][31:0];
      exists_q <= key_in.communicator < 32'(Communicators);
      entry_q <= home;
      mark_q <= mark_in;
    end
    if (catches && store_quad_i == 2'd1) sizes_q[1:0] <= sizes_last;
    if (catches && store_quad_i == 2'd2) sizes_q[3:2] <= sizes_last;
    if (state_q == StIdle && ahead_q > 3'd1) key_q.state <= exists_q ? communicator_data_i : '0;
    if (state_q == StIdle) begin
      there_q <= keys[entry_q];
      sizes_there_q <= sizes[entry_q];
      known_there_q <= known_q[entry_q];
    end
    if (look_q == LookTable) begin
      key_q.state <= exists_q ? communicator_data_i : '0;
      sizes_q[1:0] <= sizes_last;
      if (is_program) begin
        key_q.count <= descriptor_quad_i[1];
        entry_q <= ~entry_t'(descriptor_quad_i[1][32+:ProgramWidth]);
      end
      there_q <= keys[entry_q];
      sizes_there_q <= sizes[entry_q];
      known_there_q <= known_q[entry_q];
      taken_q <= taken;
    end
    if (look_q == LookCompare) sizes_q[3:2] <= sizes_last;
    if (look_q == LookCompare || state_q == StIdle) begin
      match_q <= is_program ? loaded_q[program_slot] && key_q.state[CommunicatorValid] &&
                              !key_q.state[CommunicatorRevoked]
                            : known_there_q && there_q == key_q;
      fits_q <= is_program || (sizes_q[0] >= sizes_there_q[0] && sizes_q[1] >= sizes_there_q[1] &&
                               sizes_upper[0] >= sizes_there_q[2] && sizes_upper[1] >= sizes_there_q[3]);
    end
  end

  // Of a program, only the signature was given when it was loaded.
  context_t context_there_q;
  always_ff @(posedge clk_i) begin
    context_there_q <= contexts[entry_q];
    if (is_program) begin
      context_there_q.communicator <= key_q.communicator[7:0];
      context_there_q.algorithm <= '0;
      context_there_q.space <= SpaceCollective;
      context_there_q.dtype <= datatype_e'(key_q.head[29:24]);
    end
  end

  // The tag of a call that is replayed is looked at here, all else has been when the program was made. A region that is
  // a stream is bound to its port later, as one in memory to its address (unisono_move_streams).
  logic decides, hit, keeps, begins, loads;
  assign decides = state_q == StLook && look_q == LookDecide;
  assign hit = match_q && fits_q
      && (context_there_q.space != SpacePointToPoint || unisono_cclo_pkg::is_message_tag(tag_q));
  assign keeps = !taken_q && !is_program;

  // What is kept, and for which communicators, does not change while a descriptor is looked at ahead.
  logic settles;                           // whether the start is known is decided
  slot_t start_slot;
  assign settles = decides || fast;
  assign start_slot = fast ? work_i.slot : slot_q;
  assign fast = looks && work_newest_i && ready_q[2] && hit && !is_program && !begins;
  always_ff @(posedge clk_i) begin
    ready_q <= state_q == StIdle ? {ready_q[1:0], ahead_q == 3'd4} : '0;
    if (catches) ahead_q <= 3'(store_quad_i) + 3'd1;
    if (!rst_ni || (store_valid_i && !catches) || looks || is_control || begins || loads) begin
      ahead_q <= '0;
      ready_q <= '0;
    end
  end

  // ------------------------------------------------------------------------------- what is under way

  logic cpu_begins, cpu_moves;
  assign cpu_moves = cpu_move_valid_i && cpu_move_ready_o;
  assign cpu_begins = cpu_work_valid_o && cpu_work_ready_i && cpu_work_o.kind == WorkStart;

  logic own_valid, own_end, own_moves, step_own, step_ends;
  lists_t sent_q;
  // The program at hand, and the next of its moves.
  entry_t play_entry_q;
  moves_t play_count_q;
  length_t length_q;
  logic [1:0] settle_q;                    // cycles since the last beat of the step, up to 3
  moves_t left_q;                          // of the step

  always_ff @(posedge clk_i) begin
    case (state_q)
      StIdle: begin
        look_q <= '0;
        slot_q <= work_i.slot;
        if (fast) begin
          state_q <= StPlay;
        end else if (looks) begin
          state_q <= StLook;
          look_q <= LookKey;
        end else if (plays_on) begin
          state_q <= StPlay;
        end
      end
      StLook: begin
        look_q <= look_q + 3'd1;
        if (decides) begin
          state_q <= hit ? StPlay : StPass;
          look_q <= '0;
        end
      end
      StPass: begin
        if (cpu_work_ready_i) state_q <= StIdle;
      end
      default: begin
        if (step_own) state_q <= StIdle;
      end
    endcase
    if (!rst_ni) begin
      state_q <= StIdle;
      look_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (cpu_begins) begin
      starting_q <= 1'b1;
      starting_slot_q <= cpu_work_o.slot;
    end else if ((cpu_moves && cpu_move_slot_i == starting_slot_q) ||
                 (cpu_step_valid_i && cpu_step_slot_i == starting_slot_q) ||
                 (cpu_fail_valid_i && cpu_fail_slot_i == starting_slot_q)) begin
      starting_q <= 1'b0;
    end
    if (!rst_ni) starting_q <= 1'b0;
  end

  assign cpu_work_o = work_i;
  assign cpu_work_valid_o = state_q == StPass ||
                            (state_q == StIdle && ((is_more && !playing_q[work_i.slot]) || is_control));
  // An item that is dealt with here is taken when that is done.
  assign work_ready_o = (cpu_work_valid_o && cpu_work_ready_i) || step_own;

  // ------------------------------------------------------------------------------------------- keeping

  logic cpu_lists, keeps_move, keeps_list, keeps_context, keeps_length, too_long;
  logic lists_more, moves_more, load_odd, load_bad_q, load_in_use;
  logic [ProgramWidth-1:0] load_slot, load_slot_q;
  entry_t load_entry;
  moves_t load_moves_q;
  lists_t load_lists_q;
  logic [3:0] load_word_q;
  logic [14:0][31:0] load_words_q;
  rest_t load_rest_q;
  logic [1:0][31:0] load_address_q;
  assign cpu_lists = cpu_list_valid_i && recording_q[cpu_list_slot_i];
  assign keeps_list = cpu_lists && 32'(cpu_list_index_i) < ListCount;
  assign keeps_move = cpu_moves && recording_q[cpu_move_slot_i] && !cpu_move_end_i && !too_long;
  assign too_long = count_q[cpu_move_slot_i][IndexWidth];

  always_ff @(posedge clk_i) begin
    if (decides && !hit && keeps) begin
      keys[entry_q] <= key_q;
      sizes[entry_q] <= sizes_q;
    end
    if (keeps_context || loads) begin
      contexts[loads ? load_entry : entry_of_q[cpu_context_slot_i]] <=
          loads ? context_t'{signature: program_data_i, space: SpaceCollective, dtype: DatatypeNone, default: '0}
                : cpu_context_i;
    end
    if (keeps_length || loads) begin
      lengths[loads ? load_entry : entry_of_q[cpu_move_slot_i]] <=
          loads ? '{moves: load_moves_q + moves_t'(load_rest_q), lists: load_lists_q}
                : '{moves: count_q[cpu_move_slot_i], lists: lists_q[cpu_move_slot_i]};
    end
  end
  assign keeps_context = cpu_context_valid_i && recording_q[cpu_context_slot_i];
  assign keeps_length = cpu_moves && cpu_move_end_i && recording_q[cpu_move_slot_i];

  // ------------------------------------------------------------------------------------------- loading
  // What may be kept goes first. A word of the host waits, and another can come only when it was taken.

  assign load_slot = begins ? program_data_i[ProgramWidth-1:0] : load_slot_q;
  assign load_entry = ~entry_t'(load_slot);
  assign program_ready_o = !(cpu_context_valid_i || cpu_move_valid_i || cpu_list_valid_i);
  assign begins = program_valid_i && program_ready_o && program_word_i == 3'd0;
  assign lists_more = program_valid_i && program_ready_o && program_word_i == 3'd1 && !load_bad_q &&
                      !load_lists_q[ListWidth];
  assign moves_more = program_valid_i && program_ready_o && program_word_i == 3'd2 && !load_bad_q &&
                      load_word_q == '1 && !load_moves_q[IndexWidth];
  // In memory there are only moves that find no place here.
  assign load_odd = load_word_q != '0 || (load_rest_q != '0 && !load_moves_q[IndexWidth]);
  assign loads = program_valid_i && program_ready_o && program_word_i == 3'd3 && !load_bad_q && !load_odd;
  always_comb begin
    load_in_use = state_q == StLook && entry_q == load_entry;
    for (int s = 0; s < int'(Slots); s++) begin
      load_in_use |= playing_q[s] && entry_of_q[s] == load_entry && !(clear_valid_i && clear_slot_i == slot_t'(s));
    end
  end

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
      load_bad_q <= program_data_i >= 32'(Programs) || load_in_use;
      if (program_data_i < 32'(Programs) && !load_in_use) begin
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

  assign program_loaded_o = loaded_q;
  assign program_state_o = {load_bad_q, 31'(loaded_q)};

  always_ff @(posedge clk_i) begin
    if (cpu_moves && recording_q[cpu_move_slot_i]) begin
      if (cpu_move_end_i) begin
        known_q[entry_of_q[cpu_move_slot_i]] <= 1'b1;
        recording_q[cpu_move_slot_i] <= 1'b0;
      end else if (too_long) begin
        recording_q[cpu_move_slot_i] <= 1'b0;
      end else begin
        count_q[cpu_move_slot_i] <= count_q[cpu_move_slot_i] + 1'b1;
      end
    end
    if (cpu_lists) begin
      if (keeps_list) lists_q[cpu_list_slot_i] <= lists_t'(cpu_list_index_i) + 1'b1;
      else recording_q[cpu_list_slot_i] <= 1'b0;
    end
    if (cpu_fail_valid_i) recording_q[cpu_fail_slot_i] <= 1'b0;
    if (clear_valid_i) begin
      recording_q[clear_slot_i] <= 1'b0;
      playing_q[clear_slot_i] <= 1'b0;
    end
    if (settles) begin
      entry_of_q[start_slot] <= entry_q;
      count_q[start_slot] <= '0;
      lists_q[start_slot] <= '0;
      if (!is_program) last_q[entry_q[EntryWidth-2:0]] <= entry_q[EntryWidth-1];
      if (!hit && keeps) marks_q[entry_q] <= mark_q;
      playing_q[start_slot] <= hit;
      recording_q[start_slot] <= !hit && keeps;
      if (!hit && keeps) known_q[entry_q] <= 1'b0;
    end
    if (begins) begin
      known_q[load_entry] <= 1'b0;
      for (int s = 0; s < int'(Slots); s++) begin
        if (entry_of_q[s] == load_entry) recording_q[s] <= 1'b0;
      end
    end
    if (own_moves && own_end) playing_q[slot_q] <= 1'b0;
    if (step_own) count_q[slot_q] <= play_count_q;
    if (cpu_work_valid_o && cpu_work_ready_i && cpu_work_o.kind == WorkControl) begin
      known_q <= '0;
      recording_q <= '0;
    end
    if (!rst_ni) begin
      known_q <= '0;
      recording_q <= '0;
      playing_q <= '0;
      marks_q <= '0;
      last_q <= '1;
    end
  end

  // --------------------------------------------------------------------------------------- giving out

  always_ff @(posedge clk_i) begin
    if (state_q == StLook || looks) begin
      play_entry_q <= entry_q;
      play_count_q <= '0;
      length_q <= lengths[entry_q];
    end else if (state_q == StIdle) begin
      play_entry_q <= entry_of_q[work_i.slot];
      play_count_q <= count_q[work_i.slot];
      length_q <= lengths[entry_of_q[work_i.slot]];
    end else if (own_moves && !own_end) begin
      play_count_q <= play_count_q + 1'b1;
    end
  end

  // Words stand at the memories' outputs before they are wanted.
  typedef struct packed {
    lists_t lists;                         // that must have been given out before it
    move_t move;
  } kept_t;

  kept_t kept, kept_in;
  logic read_first, read_move, have_q;
  logic [IndexWidth-1:0] read_index;
  assign kept_in = moves_more ? '{lists: load_lists_q, move: move_t'({program_data_i, load_words_q})}
                              : '{lists: lists_q[cpu_move_slot_i], move: cpu_move_i};
  unisono_ram_sdp #(.Width($bits(kept_t)), .Depth(Entries * MoveCount)) u_moves (
    .clk_i, .wr_en_i(keeps_move || moves_more),
    .wr_addr_i(moves_more ? {load_entry, load_moves_q[IndexWidth-1:0]}
                          : {entry_of_q[cpu_move_slot_i], count_q[cpu_move_slot_i][IndexWidth-1:0]}),
    .wr_data_i(kept_in),
    .rd_en_i(read_move), .rd_out_en_i(1'b1),
    .rd_addr_i({read_first ? entry_q : play_entry_q, read_index}), .rd_data_o(kept)
  );

  logic read_list, have_list_q, own_list, list_left;
  logic [ListWidth-1:0] list_index;
  logic [23:0] list_kept;
  unisono_ram_sdp #(.Width(24), .Depth(Entries * ListCount)) u_lists (
    .clk_i, .wr_en_i(keeps_list || lists_more),
    .wr_addr_i(lists_more ? {load_entry, load_lists_q[ListWidth-1:0]}
                          : {entry_of_q[cpu_list_slot_i], cpu_list_index_i[ListWidth-1:0]}),
    .wr_data_i(lists_more ? program_data_i[23:0] : cpu_list_word_i),
    .rd_en_i(read_list), .rd_out_en_i(1'b1),
    .rd_addr_i({read_first ? entry_q : play_entry_q, list_index}), .rd_data_o(list_kept)
  );

  // Those in memory. The call is made known in the first cycle in which it is given out.
  (* ram_style = "distributed" *) logic [63:0] rests [Programs];
  logic rest, begins_play_q;
  always_ff @(posedge clk_i) begin
    if (loads) rests[load_slot_q] <= load_address_q;
    begins_play_q <= rst_ni && replayed_o;
  end
  assign rest_begin_valid_o = begins_play_q && length_q.moves > moves_t'(MoveCount);
  assign rest_begin_slot_o = slot_q;
  assign rest_begin_address_o = rests[~play_entry_q[ProgramWidth-1:0]];
  assign rest_begin_moves_o = rest_t'(length_q.moves - moves_t'(MoveCount));

  assign rest = play_count_q >= moves_t'(MoveCount);
  assign rest_want_o = state_q == StPlay && rest;
  assign rest_want_slot_o = slot_q;
  assign rest_ready_o = rest_want_o && own_moves && !own_end;
  for (genvar s = 0; s < int'(Slots); s++) begin : gen_waits
    assign waits_o[s] = playing_q[s] && count_q[s] >= moves_t'(MoveCount) && !rest_ready_i[s];
  end

  assign own_end = play_count_q == length_q.moves;
  assign list_left = sent_q != length_q.lists;
  assign own_valid = state_q == StPlay && settle_q == '0 &&
                     (own_end ? !list_left : left_q != '0 && (rest ? rest_valid_i : have_q && kept.lists <= sent_q));
  assign own_list = state_q == StPlay && have_list_q && list_left && !cpu_list_valid_i;

  // The first word of each is fetched while the arguments are compared; in a later step, when it begins.
  assign read_first = (state_q == StLook && look_q == LookCompare) || looks;
  assign read_move = read_first || (state_q == StPlay && (!have_q || own_moves));
  assign read_index = read_first ? '0 : play_count_q[IndexWidth-1:0] + IndexWidth'(own_moves);
  assign read_list = read_first || own_list;
  assign list_index = read_first ? '0 : sent_q[ListWidth-1:0] + 1'b1;

  // All lists belong to the first step. What was given out is counted in the window's room when the step is done.
  assign step_ends = own_end ? own_moves : left_q == '0 && !list_left;
  assign step_own = state_q == StPlay && settle_q == 2'b11 && !cpu_step_valid_i;

  always_ff @(posedge clk_i) begin
    if (state_q != StPlay) begin
      have_q <= settles;
      have_list_q <= settles;
      settle_q <= '0;
      left_q <= moves_t'(MovesPerStep);
      // Of a later step, all lists have been given out.
      sent_q <= settles ? '0 : lengths[entry_of_q[work_i.slot]].lists;
    end else begin
      if (read_move) have_q <= 1'b1;
      if (own_list) sent_q <= sent_q + 1'b1;
      if (own_moves && !own_end) left_q <= left_q - 1'b1;
      if (settle_q == '0 ? step_ends : settle_q != 2'b11) settle_q <= settle_q + 2'd1;
    end
  end

  assign replayed_o = settles && hit;

  // ------------------------------------------------------------------------------------------- outputs

  // One after the other; what is on offer stays.
  logic own_q, held_q, own;
  assign own = held_q ? own_q : own_valid && (!cpu_move_valid_i || !own_q);
  assign move_valid_o = own ? own_valid : cpu_move_valid_i;
  assign move_o = !own ? cpu_move_i : rest ? rest_move_i : kept.move;
  assign move_slot_o = own ? slot_q : cpu_move_slot_i;
  assign move_end_o = own ? own_end : cpu_move_end_i;
  assign cpu_move_ready_o = !own && move_ready_i;
  assign own_moves = own && own_valid && move_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {held_q, own_q} <= '0;
    else begin
      held_q <= move_valid_o && !move_ready_i;
      if (move_valid_o) own_q <= own;
    end
  end

  assign list_valid_o = cpu_list_valid_i || own_list;
  assign list_slot_o = cpu_list_valid_i ? cpu_list_slot_i : slot_q;
  assign list_index_o = cpu_list_valid_i ? cpu_list_index_i : ListAddressWidth'(sent_q);
  assign list_word_o = cpu_list_valid_i ? cpu_list_word_i : list_kept;

  assign step_valid_o = cpu_step_valid_i || step_own;
  assign step_slot_o = cpu_step_valid_i ? cpu_step_slot_i : slot_q;

  // The microcontroller reads them only from a start to its first move, and no other start is looked at then.
  always_comb begin
    descriptor_address_o = cpu_descriptor_address_i;
    if (looks) descriptor_address_o = {work_i.slot, 4'd0};
    if (state_q == StLook) begin
      descriptor_address_o = {slot_q, 4'd8};
      if (look_q == LookKey) descriptor_address_o[3:0] = key_in.head[7:0] == CollectiveProgram ? 4'd12 : 4'd4;
    end
  end
  // Ahead of a start it is idle, too, unless the microcontroller has one.
  always_comb begin
    communicator_address_o = cpu_communicator_address_i;
    if (state_q == StLook) communicator_address_o = {key_in.communicator[CommunicatorWidth-1:0], CommunicatorState};
    else if (state_q == StIdle && !starting_q && ahead_q != '0) begin
      communicator_address_o = {key_q.communicator[CommunicatorWidth-1:0], CommunicatorState};
    end
  end

  // A communicator that was made anew counts its collectives from 0.
  typedef struct packed {
    logic [31:Life] state;
    logic [31:0] next;
  } numbers_t;
  (* ram_style = "distributed" *) numbers_t numbers [Communicators];
  logic [Communicators-1:0] counted_q;
  // Of the start at hand; a context follows it after many cycles.
  logic [CommunicatorWidth-1:0] number_of;
  numbers_t number_there;
  logic [31:0] number_q;
  context_t context_given;
  logic numbered;
  assign number_of = key_q.communicator[CommunicatorWidth-1:0];
  assign number_there = numbers[number_of];
  assign context_given = replayed_o ? context_there_q : cpu_context_i;
  assign numbered = context_given.space == SpaceCollective;

  always_ff @(posedge clk_i) begin
    number_q <= counted_q[number_of] && number_there.state == key_q.state[31:Life] ? number_there.next : '0;
    if (context_valid_o && numbered) begin
      numbers[number_of] <= '{state: key_q.state[31:Life], next: number_q + 32'd1};
      counted_q[number_of] <= 1'b1;
    end
    if (!rst_ni) counted_q <= '0;
  end

  assign context_valid_o = replayed_o || cpu_context_valid_i;
  assign context_slot_o = replayed_o ? start_slot : cpu_context_slot_i;
  always_comb begin
    context_o = context_given;
    if (numbered) context_o.sequence_or_tag = number_q;
    else if (replayed_o) context_o.sequence_or_tag = tag_q;
  end

  // ---------------------------------------------------------------------------------------- assertions

`ifndef SYNTHESIS
  move_held :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      move_valid_o && !move_ready_i |=> move_valid_o && $stable(move_slot_o) && $stable(move_end_o));
  one_context :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !(replayed_o && cpu_context_valid_i));
  cleared_before_start :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      looks |-> !playing_q[work_i.slot] && !recording_q[work_i.slot]);
  context_of_the_start :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      context_valid_o |-> context_o.communicator == key_q.communicator[7:0]);
  start_before_context :
  assert property (@(posedge clk_i) disable iff (!rst_ni) cpu_context_valid_i |-> starting_q);
`endif

endmodule
