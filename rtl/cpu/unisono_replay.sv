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
// While nothing is to be done, the descriptor that the front end stores is looked at as it comes, so that a call that
// is known is given out as soon as it starts. This concerns the descriptor that came last alone; the others are read
// again.
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

  typedef logic [EntryWidth-1:0] entry_t;
  typedef logic [$clog2(MostMoves+1)-1:0] moves_t;
  typedef logic [RestWidth-1:0] rest_t;
  typedef logic [ListWidth:0] lists_t;
  typedef logic [SlotWidth-1:0] slot_t;

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

  // What of each slot's call is under way; entries with a whole program.
  logic [Slots-1:0] playing, recording;
  entry_t [Slots-1:0] entry_of;
  moves_t [Slots-1:0] counts;
  lists_t [Slots-1:0] lists;
  logic [Entries-1:0] known;

  // The microcontroller has a start whose first move is still to come. (A first step without moves is over, too: the
  // next one would wait for this slot's turn, behind the starts that wait here.)
  logic starting_q;
  slot_t starting_slot_q;

  logic is_start, is_more, is_control, looks, plays_on;
  assign is_start = work_valid_i && work_i.kind == WorkStart;
  assign is_more = work_valid_i && work_i.kind == WorkMore;
  assign is_control = work_valid_i && work_i.kind == WorkControl;
  assign looks = state_q == StIdle && is_start && !starting_q;
  assign plays_on = state_q == StIdle && is_more && playing[work_i.slot];

  // ---------------------------------------------------------------------------------------------- look

  // Rows 0 to 3 come first: arguments and tag. Then rows 4 to 7, or 12 to 15 of a call of a program, with its slot;
  // then rows 8 to 11.
  localparam logic [2:0] LookKey = 3'd1;
  localparam logic [2:0] LookTable = 3'd2;
  localparam logic [2:0] LookCompare = 3'd3;
  localparam logic [2:0] LookDecide = 3'd4;

  // Of keys other fields are compared only.
  // verilator lint_off UNUSEDSIGNAL
  call_key_t next_key, key;
  // verilator lint_on UNUSEDSIGNAL
  logic [31:0] tag;
  entry_t entry;
  logic is_program, match, fits, catches, ahead, taken_q, settles, keeps, hit, fast, begins, loads;
  logic [Programs-1:0] pinned, loaded;
  unisono_replay_compare #(.Communicators(Communicators), .Entries(Entries), .Programs(Programs)) u_compare (
    .clk_i, .rst_ni, .look_i(look_q), .looking_i(state_q == StLook), .idle_i(state_q == StIdle),
    .descriptor_quad_i, .store_data_i, .store_valid_i, .store_quad_i,
    .may_catch_i(state_q == StIdle && !starting_q && !is_start),
    .forget_i(looks || is_control || begins || loads), .communicator_data_i, .known_i(known), .pinned_i(pinned),
    .loaded_i(loaded), .next_key_o(next_key), .key_o(key), .tag_o(tag), .entry_o(entry), .is_program_o(is_program),
    .match_o(match), .fits_o(fits), .catches_o(catches), .ahead_o(ahead), .settles_i(settles),
    .keeps_i(!hit && keeps)
  );

  // A program that is given out or kept stays where it is, and so does one whose slot the host began to load just now.
  logic taken;
  logic [EntryWidth-1:0] entry_from_last;
  assign entry_from_last = ~entry;
  always_comb begin
    taken = 32'(entry_from_last) < Programs && pinned[entry_from_last[ProgramWidth-1:0]];
    for (int s = 0; s < int'(Slots); s++) begin
      taken |= (playing[s] || recording[s]) && entry_of[s] == entry;
    end
  end

  (* ram_style = "distributed" *) context_t contexts [Entries];
  always_ff @(posedge clk_i) begin
    if (look_q == LookTable) taken_q <= taken;
  end

  // Of a program, only the signature was given when it was loaded.
  context_t context_there_q;
  always_ff @(posedge clk_i) begin
    context_there_q <= contexts[entry];
    if (is_program) begin
      context_there_q.communicator <= key.communicator[7:0];
      context_there_q.algorithm <= '0;
      context_there_q.space <= SpaceCollective;
      context_there_q.dtype <= datatype_e'(key.head[29:24]);
    end
  end

  // The tag of a call that is replayed is looked at here, all else has been when the program was made. A region that is
  // a stream is bound to its port later, as one in memory to its address (unisono_move_streams).
  logic decides;
  assign decides = state_q == StLook && look_q == LookDecide;
  assign hit = match && fits
      && (context_there_q.space != SpacePointToPoint || unisono_cclo_pkg::is_message_tag(tag));
  assign keeps = !taken_q && !is_program;

  slot_t start_slot;
  assign settles = decides || fast;         // whether the start is known is decided
  assign start_slot = fast ? work_i.slot : slot_q;
  assign fast = looks && work_newest_i && ahead && hit && !is_program && !begins;

  // ------------------------------------------------------------------------------- what is under way

  logic cpu_begins, cpu_moves;
  assign cpu_moves = cpu_move_valid_i && cpu_move_ready_o;
  assign cpu_begins = cpu_work_valid_o && cpu_work_ready_i && cpu_work_o.kind == WorkStart;

  logic own_valid, own_end, own_moves, step_own;
  lists_t sent;
  moves_t play_count;

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
                            (state_q == StIdle && ((is_more && !playing[work_i.slot]) || is_control));
  // An item that is dealt with here is taken when that is done.
  assign work_ready_o = (cpu_work_valid_o && cpu_work_ready_i) || step_own;

  // ------------------------------------------------------------------------------------------- keeping

  logic keeps_move, keeps_list, keeps_context, keeps_length;
  logic lists_more, moves_more;
  logic [ProgramWidth-1:0] load_slot;
  entry_t load_entry;
  moves_t load_moves;
  lists_t load_lists;
  logic [14:0][31:0] load_words;
  rest_t load_rest;
  logic [63:0] load_address;

  unisono_replay_slots #(
    .Entries(Entries), .MoveCount(MoveCount), .MostMoves(MostMoves), .ListCount(ListCount), .ListWords(ListWords)
  ) u_slots (
    .clk_i, .rst_ni, .settles_i(settles), .start_slot_i(start_slot), .start_entry_i(entry), .hit_i(hit),
    .keeps_i(keeps), .move_i(cpu_moves), .move_slot_i(cpu_move_slot_i), .move_end_i(cpu_move_end_i),
    .list_i(cpu_list_valid_i), .list_slot_i(cpu_list_slot_i), .list_index_i(cpu_list_index_i),
    .fail_i(cpu_fail_valid_i), .fail_slot_i(cpu_fail_slot_i), .keeps_move_o(keeps_move), .keeps_list_o(keeps_list),
    .keeps_length_o(keeps_length), .step_i(step_own), .end_i(own_moves && own_end), .play_slot_i(slot_q),
    .play_count_i(play_count), .clear_i(clear_valid_i), .clear_slot_i(clear_slot_i), .load_i(begins),
    .load_entry_i(load_entry),
    .forget_i(cpu_work_valid_o && cpu_work_ready_i && cpu_work_o.kind == WorkControl), .playing_o(playing),
    .recording_o(recording), .entries_o(entry_of), .counts_o(counts), .lists_o(lists), .known_o(known)
  );

  always_ff @(posedge clk_i) begin
    if (keeps_context || loads) begin
      contexts[loads ? load_entry : entry_of[cpu_context_slot_i]] <=
          loads ? context_t'{signature: program_data_i, space: SpaceCollective, dtype: DatatypeNone, default: '0}
                : cpu_context_i;
    end
  end
  assign keeps_context = cpu_context_valid_i && recording[cpu_context_slot_i];

  // ------------------------------------------------------------------------------------------- loading
  // What may be kept goes first. A word of the host waits, and another can come only when it was taken.

  logic load_in_use;
  always_comb begin
    load_in_use = state_q == StLook && entry == load_entry;
    for (int s = 0; s < int'(Slots); s++) begin
      load_in_use |= playing[s] && entry_of[s] == load_entry && !(clear_valid_i && clear_slot_i == slot_t'(s));
    end
  end

  unisono_replay_load #(
    .Entries(Entries), .Programs(Programs), .MoveCount(MoveCount), .MostMoves(MostMoves), .ListCount(ListCount)
  ) u_load (
    .clk_i, .rst_ni, .blocked_i(cpu_context_valid_i || cpu_move_valid_i || cpu_list_valid_i),
    .program_valid_i, .program_ready_o, .program_word_i, .program_data_i, .program_state_o,
    .entry_o(load_entry), .in_use_i(load_in_use), .begins_o(begins), .list_o(lists_more), .move_o(moves_more),
    .loads_o(loads), .words_o(load_words), .slot_o(load_slot), .moves_o(load_moves), .lists_o(load_lists),
    .rest_o(load_rest), .rest_address_o(load_address), .pinned_o(pinned), .loaded_o(loaded)
  );
  assign program_loaded_o = loaded;

  // --------------------------------------------------------------------------------------- giving out

  move_t own_move;
  logic own_list;
  logic [23:0] list_kept;
  entry_t move_entry, list_entry;
  assign move_entry = entry_of[cpu_move_slot_i];
  assign list_entry = entry_of[cpu_list_slot_i];
  unisono_replay_give #(
    .Entries(Entries), .Programs(Programs), .MoveCount(MoveCount), .MostMoves(MostMoves), .ListCount(ListCount)
  ) u_give (
    .clk_i, .rst_ni,
    .list_write_i(keeps_list || lists_more), .list_entry_i(lists_more ? load_entry : list_entry),
    .list_index_i(lists_more ? load_lists[ListWidth-1:0] : cpu_list_index_i[ListWidth-1:0]),
    .list_word_i(lists_more ? program_data_i[23:0] : cpu_list_word_i),
    .move_write_i(keeps_move || moves_more), .move_entry_i(moves_more ? load_entry : move_entry),
    .move_index_i(moves_more ? load_moves[IndexWidth-1:0] : counts[cpu_move_slot_i][IndexWidth-1:0]),
    .move_lists_i(moves_more ? load_lists : lists[cpu_move_slot_i]),
    .move_i(moves_more ? move_t'({program_data_i, load_words}) : cpu_move_i),
    .length_write_i(keeps_length || loads), .length_entry_i(loads ? load_entry : move_entry),
    .length_moves_i(loads ? load_moves + moves_t'(load_rest) : counts[cpu_move_slot_i]),
    .length_lists_i(loads ? load_lists : lists[cpu_move_slot_i]),
    .rest_write_i(loads), .rest_slot_i(load_slot), .rest_address_i(load_address),
    .idle_i(state_q == StIdle), .starts_i(looks), .looks_i(state_q == StLook || looks),
    .compares_i(state_q == StLook && look_q == LookCompare), .settles_i(settles), .replays_i(replayed_o),
    .plays_i(state_q == StPlay), .entry_i(entry), .work_entry_i(entry_of[work_i.slot]),
    .work_count_i(counts[work_i.slot]), .count_o(play_count),
    .valid_o(own_valid), .end_o(own_end), .move_o(own_move), .moves_i(own_moves),
    .list_valid_o(own_list), .list_index_o(sent), .list_word_o(list_kept), .list_taken_i(cpu_list_valid_i),
    .step_o(step_own), .step_taken_i(cpu_step_valid_i),
    .rest_begin_valid_o, .rest_begin_address_o, .rest_begin_moves_o, .rest_want_o, .rest_valid_i, .rest_ready_o,
    .rest_move_i
  );
  assign rest_begin_slot_o = slot_q;
  assign rest_want_slot_o = slot_q;
  for (genvar s = 0; s < int'(Slots); s++) begin : gen_waits
    assign waits_o[s] = playing[s] && counts[s] >= moves_t'(MoveCount) && !rest_ready_i[s];
  end

  assign replayed_o = settles && hit;

  // ------------------------------------------------------------------------------------------- outputs

  // One after the other; what is on offer stays.
  logic own_q, held_q, own;
  assign own = held_q ? own_q : own_valid && (!cpu_move_valid_i || !own_q);
  assign move_valid_o = own ? own_valid : cpu_move_valid_i;
  assign move_o = !own ? cpu_move_i : own_move;
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
  assign list_index_o = cpu_list_valid_i ? cpu_list_index_i : ListAddressWidth'(sent);
  assign list_word_o = cpu_list_valid_i ? cpu_list_word_i : list_kept;

  assign step_valid_o = cpu_step_valid_i || step_own;
  assign step_slot_o = cpu_step_valid_i ? cpu_step_slot_i : slot_q;

  // The microcontroller reads them only from a start to its first move, and no other start is looked at then.
  always_comb begin
    descriptor_address_o = cpu_descriptor_address_i;
    if (looks) descriptor_address_o = {work_i.slot, 4'd0};
    if (state_q == StLook) begin
      descriptor_address_o = {slot_q, 4'd8};
      if (look_q == LookKey) descriptor_address_o[3:0] = next_key.head[7:0] == CollectiveProgram ? 4'd12 : 4'd4;
    end
  end
  // Ahead of a start it is idle, too, unless the microcontroller has one.
  always_comb begin
    communicator_address_o = cpu_communicator_address_i;
    if (state_q == StLook) communicator_address_o = {next_key.communicator[CommunicatorWidth-1:0], CommunicatorState};
    else if (state_q == StIdle && !starting_q && catches) begin
      communicator_address_o = {key.communicator[CommunicatorWidth-1:0], CommunicatorState};
    end
  end

  // Of the start at hand; a context follows it after many cycles.
  logic [31:0] number;
  context_t context_given;
  logic numbered;
  assign context_given = replayed_o ? context_there_q : cpu_context_i;
  assign numbered = context_given.space == SpaceCollective;
  unisono_replay_numbers #(.Communicators(Communicators)) u_numbers (
    .clk_i, .rst_ni, .communicator_i(key.communicator[CommunicatorWidth-1:0]), .state_i(key.state),
    .count_i(context_valid_o && numbered), .number_o(number)
  );

  assign context_valid_o = replayed_o || cpu_context_valid_i;
  assign context_slot_o = replayed_o ? start_slot : cpu_context_slot_i;
  always_comb begin
    context_o = context_given;
    if (numbered) context_o.sequence_or_tag = number;
    else if (replayed_o) context_o.sequence_or_tag = tag;
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
      looks |-> !playing[work_i.slot] && !recording[work_i.slot]);
  context_of_the_start :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      context_valid_o |-> context_o.communicator == key.communicator[7:0]);
  start_before_context :
  assert property (@(posedge clk_i) disable iff (!rst_ni) cpu_context_valid_i |-> starting_q);
`endif

endmodule
