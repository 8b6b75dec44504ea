// Dispatcher: turns the moves that the scoreboard has issued into jobs, one segment at a time.
//
// A move is looked at when it issues and whenever something may have changed for it (a *kick*: a segment has come, a
// credit, a grant, or its own last segment has left). A look sends at most one job: the segment at the move's
// position, if its arrival is there, its peer has given credit, its transport has reserved space, and the lane has
// room. A move that cannot go on is forgotten until the next kick; the one exception is the transport's space, for
// which a move asks again in turn.
//
// A result for a list of peers goes to all of them segment by segment: a segment is made anew for each peer, and what
// has arrived is released, and the local result written, with the last of them. So no peer has to take more than a
// segment before another one gets it (model, rule 12). A stream of a kernel gives its elements once: there the segment
// is first made as local result, and then read for each peer.
//
// An arrival of several peers is carried out segment by segment, when the segment of every peer is there: one job for
// each, through the lane's accumulator, in the order of the list.
//
// Latency: from issue to job 9 cycles without arrival and send; asking for credit or space adds what that takes.
// Throughput: one look in 5 to 8 cycles; a segment of 64 words takes 64 in the lane.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_dispatcher
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_look_pkg::*;
#(
  parameter logic [63:0] BufferBase = 64'h0,       // receive buffers in the engine's memory
  parameter int unsigned BufferBytes = 8192        // from one to the next
) (
  input  logic clk_i,
  input  logic rst_ni,

  // A call is cleared: none of its moves is looked at any more, and credit that was taken for what is not sent is
  // given back. Held until done, which ends with it.
  input  logic  clear_valid_i,
  input  slot_t clear_slot_i,
  output logic  clear_done_o,

  // Moves as they enter a window, with their place.
  input  logic     move_valid_i,
  input  move_id_t move_id_i,
  input  move_t    move_i,
  input  logic [Ranks-1:0] move_sends_i,           // the peers it sends to
  input  stream_use_t move_source_i,               // its uses of kernels' streams: op0, and the local result
  input  stream_use_t move_sink_i,

  // Moves that may start.
  input  logic     issue_valid_i,
  output logic     issue_ready_o,
  input  move_id_t issue_id_i,
  input  generation_t issue_generation_i,

  // How many bytes a move may have done, for those of its producers: two cycles after its look has begun, and then as
  // they grow. It says that it waits for more, and is kicked.
  output move_id_t       follow_id_o,
  input  logic           follow_free_i,            // one cycle after: it has none
  input  logic           follow_limited_i,
  input  message_bytes_t follow_limit_i,
  output logic           follow_waits_o,
  input  logic           follow_kick_valid_i,
  output logic           follow_kick_ready_o,
  input  move_id_t       follow_kick_id_i,

  // Kernels' streams; see unisono_stream_gate. Whether the segment of this look may use them; its move waits until it
  // may; it is dispatched.
  output stream_use_t    stream_source_o,
  output stream_use_t    stream_sink_o,
  output message_bytes_t stream_bytes_o,
  input  logic           stream_ready_i,
  output logic           stream_waits_o,
  output logic           stream_take_source_o,
  output logic           stream_take_sink_o,
  output segment_bytes_t stream_take_bytes_o,
  output logic           stream_take_first_o,
  output logic           stream_take_last_o,
  input  logic           stream_kick_valid_i,
  output logic           stream_kick_ready_o,
  input  move_id_t       stream_kick_id_i,

  // Lists of peers: a word of the program's constant pool, one cycle after the question.
  output slot_t       pool_slot_o,
  output pool_index_t pool_index_o,
  input  rank_t       pool_word_i,

  // What is known of a call, in the cycle of the question.
  output slot_t               context_slot_o,
  input  call_context_t       context_i,
  input  communicator_entry_t communicator_i,
  input  communicator_t [Calls-1:0] communicators_i,   // of each slot's call
  // A point-to-point message of that call must wait for one that comes before it; one has been announced.
  input  logic                held_i,
  output logic                announced_o,
  // Where a region stands, one cycle after the question.
  output slot_t               binding_slot_o,
  output region_e             binding_region_o,
  output logic                binding_asks_o,      // others may ask while low
  input  binding_t            binding_i,

  // The peer that a move sends to, one cycle after the question.
  output communicator_t peer_communicator_o,
  output rank_t         peer_rank_o,
  input  peer_entry_t   peer_i,

  // Credit for one eager message.
  output logic          credit_take_o,
  input  logic          credit_ready_i,
  output communicator_t credit_communicator_o,
  output rank_t         credit_peer_o,
  input  logic          credit_answer_i,
  input  logic          credit_granted_i,
  output logic          credit_back_o,             // one is given back, of the same names
  input  logic          credit_back_ready_i,
  // Credit has come.
  input  logic          credit_event_valid_i,
  output logic          credit_event_ready_o,
  input  communicator_t credit_event_communicator_i,
  input  rank_t         credit_event_peer_i,

  // A peer has granted, or raised, a landing area.
  output logic           adopt_valid_o,            // are there any of this pair?
  output pair_t          adopt_pair_o,
  input  logic           adopt_ready_i,            // those there were have been handed over
  input  logic           grant_valid_i,
  output logic           grant_ready_o,
  input  pair_t          grant_pair_i,
  input  message_bytes_t grant_limit_i,
  input  logic [15:0]    grant_slot_i,
  input  logic [15:0]    grant_generation_i,

  // Space in the transport for one packet, reserved with the answer.
  output logic           space_valid_o,
  input  logic           space_ready_i,
  output session_t       space_session_o,
  output segment_bytes_t space_bytes_o,
  input  logic           space_answer_i,
  input  logic           space_granted_i,

  // The receive-buffer manager: arrivals that have issued, their oldest segment, and what has come for them.
  output logic     post_valid_o,
  input  logic     post_ready_i,
  output post_t    post_o,
  output logic     head_valid_o,
  output pair_t    head_pair_o,
  output entry_t   head_entry_o,
  input  logic     head_answer_i,
  input  segment_t head_i,
  output logic     take_valid_o,
  output pair_t    take_pair_o,
  input  logic     take_ready_i,
  input  logic     kick_valid_i,
  output logic     kick_ready_o,
  input  move_id_t kick_id_i,
  // The local result of a list's move is there.
  input  logic     wake_valid_i,
  output logic     wake_ready_o,
  input  move_id_t wake_id_i,
  // A segment at the head of Rx that could go straight to the lane.
  input  logic           offer_valid_i,
  input  move_id_t       offer_id_i,
  input  segment_bytes_t offer_bytes_i,
  input  message_bytes_t offer_total_i,
  output logic           offer_answer_o,
  output logic           offer_accepted_o,

  // Puts and gets; see unisono_remote_operations. A put sends writes to its peer's window; a get is handed over.
  input  logic        remote_busy_i,               // another operation of the call is under way
  input  logic [15:0] remote_generation_i,
  output logic        remote_begin_o,
  output operation_t  remote_o,

  // Jobs for the lane.
  output logic job_valid_o,
  input  logic job_ready_i,
  output job_t job_o,
  // Which lane: 0 computes, 1 only sends. Messages to a peer must not overtake one another on different lanes: whether
  // some to the peer are on their way in each, and whether a job now becomes one of them.
  output logic       job_lane_o,
  output rank_t      order_peer_o,
  input  logic [1:0] order_busy_i,

  // Events for the scoreboard: a move's last segment was taken from all its peers, if there are several (the
  // receive-buffer manager tells of others), or handed to a lane; it has ended without a job.
  output logic     consumed_valid_o,
  output logic     sent_valid_o,
  output logic     complete_valid_o,
  output move_id_t event_id_o,
  output generation_t event_generation_o,

  // A move that no engine can carry out ends its call.
  output logic        fail_valid_o,
  output slot_t       fail_slot_o,
  output error_code_e fail_code_o,

  // For counters and trace: a look begins (at follow_id_o), or ends (at event_id_o) and why the move cannot go on.
  output logic look_valid_o,
  output logic park_valid_o,
  output unisono_observe_pkg::wait_e park_cause_o
);

  // ---------------------------------------------------------------------------------------------- memories

  logic move_read, run_read, run_write, progress_write, live_there, live_raise, live_clear;
  move_id_t id_d, id_q;
  given_t given;
  run_t run_word, run_new;
  progress_t progress_word, progress_new;
  unisono_dispatcher_runs u_runs (
    .clk_i, .move_valid_i, .move_id_i,
    .move_i('{source: move_source_i, sink: move_sink_i, peers: move_sends_i, move: move_i}),
    .next_id_i(id_d), .read_move_i(move_read), .read_run_i(run_read), .move_o(given), .run_o(run_word),
    .progress_o(progress_word), .live_o(live_there), .id_i(id_q), .run_write_i(run_write), .run_i(run_new),
    .progress_write_i(progress_write), .progress_i(progress_new), .live_raise_i(live_raise), .live_clear_i(live_clear)
  );

  // Who sends, and what has been granted.
  logic sender_write, sender_leaves, send_sends, kick_sends, granted, parity;
  logic [1:0] grant_leaves;
  logic sweeps;                           // after a reset: everything is lowered, whatever the memories held before
  logic [Calls-1:0] holds;
  pair_t sender_pair, send_pair, kick_pair;
  entry_t sender, kick_sender;
  grant_t grant_word;
  unisono_dispatcher_pairs u_pairs (
    .clk_i, .rst_ni, .pair_i(send_pair), .sends_o(send_sends), .sender_o(sender), .granted_o(granted), .parity_o(parity),
    .grant_o(grant_word), .ends_i(sender_leaves), .forget_i(grant_leaves),
    .begin_valid_i(sender_write), .begin_pair_i(sender_pair), .begin_entry_i(id_q.entry),
    .kick_pair_i(kick_pair), .kick_sends_o(kick_sends), .kick_sender_o(kick_sender),
    .grant_valid_i(grant_valid_i && grant_ready_o), .grant_pair_i,
    .grant_i('{generation: grant_generation_i, slot: grant_slot_i, limit: grant_limit_i}),
    .sweeps_i(sweeps), .holds_o(holds)
  );

  // ------------------------------------------------------------------------------------------------- kicks

  logic pop_valid, pop_take;
  move_id_t pop_id;
  logic again;                            // the move just looked at goes to the end of the queue
  unisono_dispatcher_kicks u_kicks (
    .clk_i, .rst_ni, .sweeps_i(sweeps), .sweep_pair_i(send_pair), .again_valid_i(again), .again_id_i(id_q),
    .grant_valid_i, .grant_ready_o, .grant_pair_i, .kick_valid_i, .kick_ready_o, .kick_id_i,
    .follow_kick_valid_i, .follow_kick_ready_o, .follow_kick_id_i,
    .stream_kick_valid_i, .stream_kick_ready_o, .stream_kick_id_i,
    .credit_valid_i(credit_event_valid_i), .credit_ready_o(credit_event_ready_o),
    .credit_communicator_i(credit_event_communicator_i), .credit_peer_i(credit_event_peer_i), .communicators_i,
    .pair_o(kick_pair), .sends_i(kick_sends), .sender_i(kick_sender),
    .next_valid_o(pop_valid), .next_take_i(pop_take), .next_id_o(pop_id)
  );

  // ----------------------------------------------------------------------------------------------- looking

  step_e state_d, state_q;
  run_t run_d, run_q;
  // A question is asked once; a run that was made in the cycle before is not read.
  logic credit_asked_d, credit_asked_q, space_asked_d, space_asked_q, issued_here_q, offer_answer_q;

  logic offered_d, offered_q;                   // this look is about the head of Rx
  logic asks_d, asks_q;                         // what goes is a request to grant the message
  logic cleared_d, cleared_q;
  assign clear_done_o = cleared_q;
  assign sweeps = state_q == StepSweep;

  logic live;                                   // the run is of the slot's present program
  assign live = live_there || issued_here_q;

  // Going through a list: what is done for each peer.
  typedef enum logic [1:0] { Posting, Checking, Dispatching } walk_e;
  walk_e walk_d, walk_q;
  pool_index_t index_d, index_q;                // 0: the count; 1 to count: the peers
  pool_index_t count_d, count_q;
  logic first_of_list, last_of_list;
  // A peer is looked up between a step of the index and what is done for it, so these come a cycle later.
  always_ff @(posedge clk_i) begin
    first_of_list <= index_q == pool_index_t'(1);
    last_of_list <= index_q == count_q;
  end
  assign pool_slot_o = id_q.slot;
  assign pool_index_o = run_q.pool + index_q;
  progress_t progress_d, progress_q;
  segment_t segment_d, segment_q;
  segment_bytes_t bytes_d, bytes_q;

  move_t move;
  logic [Ranks-1:0] move_peers;
  stream_use_t move_source, move_sink;
  assign {move_source, move_sink, move_peers, move} = given;

  // --- the run of a move that issues
  message_bytes_t move_bytes, move_bytes_q;     // the second from Bind1 on
  logic early_take, move_binds, move_ready;
  lowered_t lowered;
  unisono_dispatcher_lower u_lower (
    .clk_i, .rst_ni, .step_i(state_q), .issue_valid_i(issue_valid_i && issue_ready_o), .issue_generation_i,
    .given_i(given), .communicator_i, .region_o(binding_region_o), .region_asks_o(binding_asks_o), .binding_i,
    .bytes_o(move_bytes), .free_i(follow_free_i && !held_i && stream_ready_i),
    .credit_take_o(early_take), .credit_ready_i, .credit_answer_i, .credit_granted_i,
    .binds_o(move_binds), .ready_o(move_ready), .lowered_o(lowered)
  );
  assign run_new = lowered.run;
  assign move_bytes_q = run_new.bytes;
  assign context_slot_o = id_q.slot;
  assign binding_slot_o = id_q.slot;

  // --- how much may go
  // The next piece: a segment of what is left, known with the run, or the segment that has come.
  segment_bytes_t piece_d, piece_q, own;
  message_bytes_t end_d, end_q;                 // where it ends in its message
  function automatic segment_bytes_t piece_of(message_bytes_t left, segment_bytes_t segment);
    return left < message_bytes_t'(segment) ? segment_bytes_t'(left) : segment;
  endfunction
  assign own = run_q.arrival ? segment_q.bytes : piece_q;

  // What is granted of it. Whole elements only: grants are given in segments, which are multiples of 16.
  message_bytes_t allowed;
  logic exceeds, shortens, waits_grant, granted_q, parity_q, adopted_d, adopted_q;
  segment_bytes_t sized;
  assign allowed = grant_word.limit - progress_q.position;
  assign exceeds = end_q > grant_word.limit;
  assign waits_grant = own == '0 || (exceeds && (run_q.arrival || run_q.fan_out ||
                                                 grant_word.limit == progress_q.position));
  assign shortens = state_q == StepSize && run_q.send && !run_q.eager && exceeds && !run_q.arrival && !run_q.fan_out;
  assign sized = shortens ? segment_bytes_t'(allowed) : own;
  // Whether there is a grant is known a cycle after the pair is.
  always_ff @(posedge clk_i) begin
    granted_q <= granted;
    parity_q <= parity;
  end

  // Where that ends: known with its bytes.
  message_bytes_t after_d, after_q;
  logic last_segment_d, last_segment;
  always_comb begin
    after_d = after_q;
    last_segment_d = last_segment;
    if (state_q == StepCredit || state_q == StepSize) begin
      after_d = shortens ? grant_word.limit : end_q;
      last_segment_d = shortens ? grant_word.limit == run_q.bytes : end_q == run_q.bytes;
    end else if (state_q == StepDecode) begin
      // What goes on to space from there is a message of one segment.
      after_d = move_bytes_q;
      last_segment_d = 1'b1;
    end
  end

  // Its producers must have made what the next segment reads: before credit and space are asked for, which would
  // otherwise be held meanwhile.
  logic follows;
  assign follows = follow_free_i || !follow_limited_i ||
                   end_q <= follow_limit_i;
  assign follow_id_o = id_d;

  // Which lane. What only reads memory and sends needs no plugin, unless the compute lane still holds something for the
  // same peer; then it follows that. A job of the compute lane that finds the peer busy in the other one makes further
  // sends go its own way, so that its turn comes. What goes to several peers stays in one lane: its last job ends the
  // move, and must be the last to end.
  logic only_sends, only_sends_q, via_sender, overtakes, lane_d, lane_q, yields_d, yields_q;
  logic yields_peer, yields_peer_now_q;
  rank_t yields_peer_d, yields_peer_q;
  // Of the run that there will be in the next cycle.
  assign only_sends = run_d.send && !run_d.arrival && run_d.func == FuncNone && !run_d.local_ && !run_d.op0_use.used;
  assign yields_peer = yields_peer_q == run_d.peer;
  always_ff @(posedge clk_i) begin
    only_sends_q <= only_sends;
    yields_peer_now_q <= yields_peer;
  end
  assign via_sender = only_sends_q && (run_q.fan_out || (!order_busy_i[0] && !(yields_q && yields_peer_now_q)));
  assign overtakes = run_q.send && (via_sender ? run_q.fan_out && order_busy_i[0] : order_busy_i[1]);
  assign order_peer_o = run_q.peer;

  logic to_switch;                              // the peer is one
  assign to_switch = communicator_i.members != '0 && !run_q.fan_out && {1'b0, run_q.peer} >= communicator_i.members;
  assign job_lane_o = lane_q;

  // What it takes from a kernel must stand in that stream, and there must be room for what it gives to one, for the
  // same reason. A move that issues is asked about as a whole.
  assign stream_source_o = state_q == StepBind0 ? move_source : run_q.op0_use;
  assign stream_sink_o = state_q == StepBind0 ? move_sink : run_q.local_use;
  assign stream_bytes_o = state_q == StepBind0 ? move_bytes : message_bytes_t'(own);
  assign stream_take_source_o = job_valid_o && job_ready_i && job_o.op0 == Op0Stream;
  assign stream_take_sink_o = job_valid_o && job_ready_i && job_o.stream;
  assign stream_take_bytes_o = bytes_q;
  assign stream_take_first_o = progress_q.position == '0;
  assign stream_take_last_o = last_segment;

  // What a list gets out of a stream is made as local result first.
  logic makes, last_of_move, keeps;
  assign makes = run_q.fan_out && !progress_q.made;

  // The peers after this one two cycles after the look, the first of them three cycles after it: what is sent waits for
  // space at least as long.
  logic [Ranks-1:0] peer_one, next_peers_q;
  logic next_any, next_any_q;
  rank_t next_peer, next_peer_q;
  assign peer_one = Ranks'(1) << progress_q.peer;
  unisono_lowest_one #(.Width(Ranks)) u_next_peer (
    .bits_i(next_peers_q), .any_o(next_any), .index_o(next_peer), .one_o()
  );
  always_ff @(posedge clk_i) begin
    next_peers_q <= progress_q.peers & ~peer_one;
    next_any_q <= next_any;
    next_peer_q <= next_peer;
  end
  // The segment is needed once more, for the next peer.
  assign keeps = run_q.fan_out && !makes && next_any_q;
  assign last_of_move = last_segment && !makes && !keeps;

  pair_t arrival_pair;
  assign send_pair = '{slot: id_q.slot, peer: run_q.peer};
  assign arrival_pair = '{slot: id_q.slot, peer: run_q.source};

  assign peer_communicator_o = context_i.communicator;
  assign peer_rank_o = state_q == StepDecode ? run_new.peer : run_q.peer;

  always_comb begin
    state_d = state_q;
    id_d = id_q;
    offered_d = offered_q;
    asks_d = asks_q;
    live_raise = 1'b0;
    live_clear = 1'b0;
    piece_d = piece_q;
    end_d = end_q;
    adopted_d = adopted_q;
    cleared_d = cleared_q && clear_valid_i;
    credit_back_o = 1'b0;
    announced_o = 1'b0;
    run_d = run_q;
    progress_d = progress_q;
    segment_d = segment_q;
    walk_d = walk_q;
    index_d = index_q;
    count_d = count_q;
    bytes_d = bytes_q;
    move_read = 1'b0;
    run_read = 1'b0;
    run_write = 1'b0;
    progress_write = 1'b0;
    progress_new = progress_q;
    issue_ready_o = 1'b0;
    adopt_valid_o = 1'b0;
    wake_ready_o = 1'b0;
    pop_take = 1'b0;
    offer_answer_o = 1'b0;
    offer_accepted_o = 1'b0;
    post_valid_o = 1'b0;
    head_valid_o = 1'b0;
    take_valid_o = 1'b0;
    credit_take_o = early_take;
    space_valid_o = 1'b0;
    job_valid_o = 1'b0;
    consumed_valid_o = 1'b0;
    sent_valid_o = 1'b0;
    remote_begin_o = 1'b0;
    complete_valid_o = 1'b0;
    fail_valid_o = 1'b0;
    again = 1'b0;
    look_valid_o = 1'b0;
    credit_asked_d = 1'b0;
    space_asked_d = 1'b0;
    follow_waits_o = 1'b0;
    stream_waits_o = 1'b0;
    sender_write = 1'b0;
    sender_pair = '{slot: id_q.slot, peer: run_new.peer};
    sender_leaves = 1'b0;
    grant_leaves = '0;
    lane_d = lane_q;
    yields_d = yields_q;
    yields_peer_d = yields_peer_q;

    unique case (state_q)
      StepIdle: begin
        offered_d = 1'b0;
        asks_d = 1'b0;
        if (clear_valid_i && !cleared_q) begin
          id_d = '{slot: clear_slot_i, entry: '0};
          state_d = StepClear;
        end else if (offer_valid_i && !offer_answer_q) begin
          // Rx waits for the answer, so an offer goes first.
          look_valid_o = 1'b1;
          id_d = offer_id_i;
          offered_d = 1'b1;
          run_read = 1'b1;
          move_read = 1'b1;
          state_d = StepLook;
        end else if (issue_valid_i) begin
          issue_ready_o = 1'b1;
          look_valid_o = 1'b1;
          id_d = issue_id_i;
          move_read = 1'b1;
          state_d = StepBind0;
        end else if (wake_valid_i) begin
          look_valid_o = 1'b1;
          id_d = wake_id_i;
          run_read = 1'b1;
          state_d = StepWake;
        end else if (pop_valid) begin
          pop_take = 1'b1;
          look_valid_o = 1'b1;
          id_d = pop_id;
          run_read = 1'b1;
          move_read = 1'b1;
          state_d = StepLook;
        end
      end

      StepWake: begin
        wake_ready_o = 1'b1;
        progress_d = progress_word;
        progress_d.making = 1'b0;
        progress_d.made = 1'b1;
        progress_new = progress_d;
        progress_write = live;
        again = live;
        state_d = StepIdle;
      end

      // Credit for a short message that waits for nothing else is asked for meanwhile.
      StepBind0: state_d = StepBind1;
      StepBind1: state_d = move_binds ? StepBind2 : StepDecode;
      StepBind2: state_d = StepDecode;

      StepDecode: if (move_ready) begin
        run_write = 1'b1;
        progress_new = '0;
        progress_new.credited = lowered.credited;
        progress_new.peers = move_peers;
        progress_new.peer = lowered.peer;
        progress_new.made = !move_source.used;
        progress_write = 1'b1;
        run_d = run_new;
        progress_d = progress_new;
        live_raise = 1'b1;
        piece_d = piece_of(run_new.bytes, run_new.segment);
        end_d = message_bytes_t'(piece_d);
        if (lowered.outside) begin
          fail_valid_o = 1'b1;
          state_d = StepIdle;
          // Nothing of it is sent, but the credit that it has is given back.
          progress_new.done = 1'b1;
          sender_write = lowered.credited;
        end else if (!lowered.exists) begin
          consumed_valid_o = 1'b1;
          sent_valid_o = 1'b1;
          complete_valid_o = 1'b1;
          state_d = StepIdle;
        end else begin
          sender_write = run_new.send && !run_new.put;
          state_d = run_new.fan_in ? StepListWait : run_new.arrival ? StepPost
                    : lowered.credited && lowered.one_piece ? StepSpace : !run_new.fan_out && follow_free_i ? StepCredit : StepLook;
          bytes_d = piece_d;
          walk_d = Posting;
          index_d = '0;
        end
      end

      StepPost: begin
        // The manager kicks when a segment is there, now or later.
        post_valid_o = 1'b1;
        if (post_ready_i) begin
          state_d = run_q.fan_in && !last_of_list ? StepListWait : StepIdle;
          index_d = index_q + 1'b1;
        end
      end

      StepListWait: state_d = index_q == '0 ? StepListCount : StepListRank;
      StepListCount: begin
        count_d = pool_index_t'(pool_word_i);
        index_d = pool_index_t'(1);
        state_d = StepListWait;
      end
      StepListRank: begin
        run_d.source = pool_word_i;
        state_d = walk_q == Posting ? StepPost : StepHead;
      end

      StepLook: begin
        if (!issued_here_q) begin
          run_d = run_word;
          progress_d = progress_word;
        end
        piece_d = piece_of(run_d.bytes - progress_d.position, run_d.segment);
        end_d = progress_d.position + message_bytes_t'(run_d.segment);
        if (end_d > run_d.bytes) end_d = run_d.bytes;
        // What was asked for is sent when it is granted, however short it is.
        run_d.eager = run_d.eager && !progress_d.requested;
        if (run_d.fan_out) begin
          run_d.peer = progress_d.peer;
          if (!progress_d.made) begin
            run_d.send = 1'b0;
          end else if (run_d.op0_use.used) begin
            // The segment's local result is there.
            run_d.arrival = 1'b0;
            run_d.fan_in = 1'b0;
            run_d.func = FuncNone;
            run_d.op0_use.used = 1'b0;
            run_d.op0_address = run_d.local_address;
            run_d.op1_memory = 1'b0;
            run_d.local_ = 1'b0;
          end
        end
        // A kick that came too late finds its move done, or its local result not there yet.
        state_d = progress_d.done || progress_d.making ? StepIdle
                  : run_d.fan_in ? StepListWait
                  : !run_d.arrival && !offered_q && follow_free_i ? StepCredit : StepHead;
        walk_d = Checking;
        index_d = '0;
        // What several peers get is needed more than once, so it stands in a buffer.
        if (!live || (offered_q && run_d.fan_out)) begin
          state_d = StepIdle;
          offer_answer_o = offered_q;
        end
      end

      StepHead: begin
        if (offered_q) begin
          segment_d = '{valid: 1'b1, buffer: '0, bytes: offer_bytes_i, last: 1'b0, total: offer_total_i};
          // The sender of a point-to-point message says how long it is.
          if (context_i.point_to_point) run_d.bytes = offer_total_i;
          end_d = progress_q.position + message_bytes_t'(offer_bytes_i);
          state_d = StepCredit;
        end else if (run_q.arrival) begin
          head_valid_o = 1'b1;
          if (head_answer_i) begin
            segment_d = head_i;
            end_d = progress_q.position + message_bytes_t'(head_i.bytes);
            if (context_i.point_to_point) run_d.bytes = head_i.total;
            state_d = !head_i.valid ? StepIdle : walk_q == Dispatching ? StepDispatch : StepCredit;
            if (run_q.fan_in && walk_q == Checking && head_i.valid) begin
              // Members cut alike, so the segments of all peers have one length.
              if (!first_of_list && head_i.bytes != segment_q.bytes) begin
                fail_valid_o = 1'b1;
                state_d = StepIdle;
              end else if (!last_of_list) begin
                index_d = index_q + 1'b1;
                state_d = StepListWait;
              end
            end
          end
        end else begin
          state_d = StepCredit;
        end
      end

      StepCredit: begin
        if (!follows && !credit_asked_q) begin
          follow_waits_o = 1'b1;
          offer_answer_o = offered_q;
          state_d = StepIdle;
        end else if (!stream_ready_i && !credit_asked_q) begin
          stream_waits_o = 1'b1;
          offer_answer_o = offered_q;
          state_d = StepIdle;
        end else if ((run_q.put || run_q.get) && remote_busy_i) begin
          again = 1'b1;
          state_d = StepIdle;
        end else if (run_q.get) begin
          remote_begin_o = 1'b1;
          progress_d.done = 1'b1;
          progress_new = progress_d;
          progress_write = 1'b1;
          state_d = StepIdle;
        end else if (run_q.put) begin
          bytes_d = own;
          state_d = StepSpace;
        end else if (!run_q.send) begin
          bytes_d = own;
          lane_d = 1'b0;
          state_d = StepDispatch;
        end else if (held_i) begin
          // What is before it waits for space at most.
          again = 1'b1;
          state_d = StepIdle;
        end else if (run_q.eager) begin
          bytes_d = own;
          if (progress_q.credited) begin
            state_d = StepSpace;
          end else begin
            credit_take_o = !credit_asked_q;
            credit_asked_d = !credit_answer_i && (credit_asked_q || credit_ready_i);
            if (credit_answer_i) begin
              progress_d.credited = credit_granted_i;
              progress_new = progress_d;
              progress_write = credit_granted_i;
              // Credit may be held by messages that the peer takes only after this one, so it is asked.
              asks_d = !credit_granted_i;
              state_d = StepSpace;
            end
          end
        end else if ((context_i.point_to_point || to_switch) && !progress_q.requested) begin
          // A receive that does not know of it, and a switch that knows no calls, are asked for place.
          asks_d = 1'b1;
          state_d = StepSpace;
        end else begin
          adopted_d = 1'b0;
          state_d = StepSize;
        end
        if (asks_d) begin
          // What is at the head of Rx does not wait for it.
          bytes_d = '0;
          offer_answer_o = offered_q;
          offered_d = 1'b0;
        end
      end

      StepGrants: begin
        adopt_valid_o = 1'b1;
        if (adopt_ready_i) begin
          adopted_d = 1'b1;
          state_d = StepSize;
        end
      end

      StepSize: begin
        bytes_d = sized;
        lane_d = 1'b0;
        state_d = run_q.send ? StepSpace : StepDispatch;
        if (run_q.send && !run_q.eager && !granted_q && !adopted_q) begin
          state_d = StepGrants;
        end else if (run_q.send && !run_q.eager && (!granted_q || (run_q.bytes != '0 && waits_grant))) begin
          // Nothing may go yet: the next grant kicks.
          state_d = StepIdle;
          offer_answer_o = offered_q;
        end
      end

      StepSpace: begin
        space_valid_o = !space_asked_q && !overtakes;
        if (!space_asked_q) lane_d = via_sender;
        if (overtakes && !space_asked_q) begin
          yields_d = yields_q || !only_sends_q;
          if (!yields_q) yields_peer_d = run_q.peer;
          state_d = StepIdle;
          offer_answer_o = offered_q;
          again = !offered_q;
        end else if (space_answer_i) begin
          if (space_granted_i) begin
            state_d = StepDispatch;
          end else begin
            state_d = StepIdle;
            offer_answer_o = offered_q;
            again = !offered_q;
          end
        end else begin
          space_asked_d = space_asked_q || space_ready_i;
        end
      end

      StepDispatch: begin
        if (asks_q) begin
          job_valid_o = 1'b1;
          if (job_ready_i) begin
            announced_o = 1'b1;
            if (!lane_q && yields_peer_now_q) yields_d = 1'b0;
            progress_d.requested = 1'b1;
            progress_new = progress_d;
            progress_write = 1'b1;
            state_d = StepIdle;
          end
        end else if (run_q.fan_in && walk_q == Checking) begin
          walk_d = Dispatching;
          index_d = pool_index_t'(1);
          state_d = StepListWait;
        end else if (run_q.fan_in && !last_of_list) begin
          // One message of several.
          job_valid_o = run_q.bytes != '0 && (keeps || take_ready_i);
          take_valid_o = !keeps && job_ready_i;
          if (keeps ? job_ready_i || run_q.bytes == '0 : take_ready_i) begin
            index_d = index_q + 1'b1;
            state_d = StepListWait;
          end
        end else if (run_q.bytes == '0 && !run_q.send) begin
          // A signal that only arrives needs no lane.
          take_valid_o = 1'b1;
          if (take_ready_i) begin
            consumed_valid_o = run_q.fan_in;
            complete_valid_o = 1'b1;
            progress_d.done = 1'b1;
            progress_new = progress_d;
            progress_write = 1'b1;
            state_d = StepIdle;
          end
        end else begin
          job_valid_o = !run_q.arrival || offered_q || keeps || take_ready_i;
          take_valid_o = run_q.arrival && !offered_q && !keeps && job_ready_i;
          if (job_valid_o && job_ready_i) begin
            announced_o = run_q.send && !run_q.put;
            remote_begin_o = run_q.put && progress_q.position == '0;
            if (!makes && !keeps) progress_d.position = after_q;
            progress_d.done = last_of_move;
            progress_d.making = makes;
            consumed_valid_o = last_segment && run_q.fan_in && !keeps;
            if (run_q.send && !lane_q && yields_peer_now_q) yields_d = 1'b0;
            sent_valid_o = last_of_move && run_q.send && !run_q.put;
            if (last_segment && run_q.send && !run_q.put) begin
              sender_leaves = 1'b1;
              // A short message leaves the grant alone that has come for a long one behind it.
              if (!run_q.eager) grant_leaves[parity_q] = 1'b1;
            end
            if (run_q.fan_out && run_q.send) begin
              // On to the next peer with the same segment, or to the first one with the next segment.
              progress_d.peers = next_any_q ? next_peers_q : move_peers;
              progress_d.peer = next_any_q ? next_peer_q : lowered.peer;
              if (!next_any_q) progress_d.made = !move_source.used;
              progress_d.credited = 1'b0;
              progress_d.requested = 1'b0;
              sender_write = next_any_q && progress_q.position == '0;
              sender_pair = '{slot: id_q.slot, peer: next_peer_q};
            end
            progress_new = progress_d;
            progress_write = 1'b1;
            again = !last_of_move && !job_o.wakes;
            offer_answer_o = offered_q;
            offer_accepted_o = offered_q;
            state_d = StepIdle;
          end
        end
      end

      StepClear: begin
        run_d.peer = '0;
        state_d = StepClearPeer;
        if (!holds[id_q.slot]) begin
          live_clear = 1'b1;
          yields_d = 1'b0;
          cleared_d = 1'b1;
          state_d = StepIdle;
        end
      end
      StepClearPeer: begin
        // Its message has been begun here and not yet ended; or a grant has come for one that will not be.
        grant_leaves = 2'b11;
        id_d.entry = sender;
        run_read = 1'b1;
        if (send_sends) begin
          state_d = StepClearCredit;
        end else begin
          run_d.peer = run_q.peer + 1'b1;
          if (run_q.peer == '1) state_d = StepClear;
        end
      end
      StepClearCredit: begin
        credit_back_o = live && progress_word.credited;
        if (!credit_back_o || credit_back_ready_i) begin
          sender_leaves = 1'b1;
          state_d = StepClearPeer;
        end
      end

      StepSweep: begin
        sender_leaves = 1'b1;
        grant_leaves = 2'b11;
        live_clear = 1'b1;
        {id_d.slot, run_d.peer} = send_pair + 1'b1;
        if (send_pair == '1) state_d = StepIdle;
      end

      default: state_d = StepIdle;
    endcase
  end

  assign remote_o = '{id: id_q, peer: run_q.peer, get: run_q.get, dtype: run_q.dtype,
                      offset: message_bytes_t'(run_q.op1_address), bytes: run_q.bytes, address: run_q.local_address};
  assign post_o = '{id: id_q, peer: run_q.source, tag: move.arrival.tag, bytes: run_q.bytes,
                    rendezvous: !run_q.eager && !context_i.point_to_point, fan_in: run_q.fan_in,
                    generation: run_q.generation};
  assign adopt_pair_o = send_pair;
  assign head_pair_o = arrival_pair;
  assign head_entry_o = id_q.entry;
  assign take_pair_o = arrival_pair;
  assign credit_communicator_o = context_i.communicator;
  assign credit_peer_o = state_q == StepBind0 ? rank_t'(move.remote.peer) : run_q.peer;
  assign space_session_o = peer_i.session;
  assign space_bytes_o = bytes_q;
  assign event_id_o = id_q;
  assign event_generation_o = state_q == StepDecode ? run_new.generation : run_q.generation;
  assign fail_slot_o = id_q.slot;
  assign fail_code_o = ErrorCodeInvalidArgument;

  // --- one question at a time
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StepSweep;
      id_q <= '0;
      offered_q <= 1'b0;
      asks_q <= 1'b0;
      cleared_q <= 1'b0;
      run_q <= '0;
      progress_q <= '0;
      segment_q <= '0;
      walk_q <= Posting;
      index_q <= '0;
      count_q <= '0;
      bytes_q <= '0;
      piece_q <= '0;
      end_q <= '0;
      adopted_q <= 1'b0;
      after_q <= '0;
      last_segment <= 1'b0;
      lane_q <= 1'b0;
      yields_q <= 1'b0;
      yields_peer_q <= '0;
      credit_asked_q <= 1'b0;
      space_asked_q <= 1'b0;
      issued_here_q <= 1'b0;
      offer_answer_q <= 1'b0;
    end else begin
      state_q <= state_d;
      id_q <= id_d;
      offered_q <= offered_d;
      asks_q <= asks_d;
      cleared_q <= cleared_d;
      run_q <= run_d;
      progress_q <= progress_d;
      segment_q <= segment_d;
      walk_q <= walk_d;
      index_q <= index_d;
      count_q <= count_d;
      bytes_q <= bytes_d;
      piece_q <= piece_d;
      end_q <= end_d;
      adopted_q <= adopted_d;
      after_q <= after_d;
      last_segment <= last_segment_d;
      lane_q <= lane_d;
      yields_q <= yields_d;
      yields_peer_q <= yields_peer_d;
      credit_asked_q <= credit_asked_d;
      space_asked_q <= space_asked_d;
      issued_here_q <= state_q == StepDecode;
      offer_answer_q <= offer_answer_o;
    end
  end

  // ---------------------------------------------------------------------------------------------- observing

  assign park_valid_o = state_q inside {StepPost, StepHead, StepCredit, StepGrants, StepSize, StepSpace, StepDispatch} && state_d == StepIdle;
  always_comb begin
    case (state_q)
      StepPost, StepHead: park_cause_o = unisono_observe_pkg::WaitArrival;
      StepCredit: park_cause_o = follow_waits_o ? unisono_observe_pkg::WaitProducer : unisono_observe_pkg::WaitSpace;
      // A short message asks to be granted for want of credit only.
      StepGrants, StepSize: park_cause_o = progress_q.requested && run_q.bytes <= message_bytes_t'(communicator_i.eager_limit)
                                   ? unisono_observe_pkg::WaitCredit : unisono_observe_pkg::WaitGrant;
      StepSpace: park_cause_o = unisono_observe_pkg::WaitSpace;
      StepDispatch: park_cause_o = !asks_q ? unisono_observe_pkg::WaitNone
                               : run_q.eager ? unisono_observe_pkg::WaitCredit : unisono_observe_pkg::WaitGrant;
      default: park_cause_o = unisono_observe_pkg::WaitNone;
    endcase
  end

  // --------------------------------------------------------------------------------------------------- job

  logic partial;                                // one message of several, not the last
  assign partial = run_q.fan_in && !last_of_list;

  always_comb begin
    job_o = '0;
    job_o.id = id_q;
    job_o.generation = run_q.generation;
    job_o.last = last_of_move && !partial && !run_q.put;   // its peer says when a put is complete
    job_o.wakes = makes && !partial;
    job_o.bytes = bytes_q;
    // The first message of a list is there to be added to, unless there is an op0.
    job_o.func = run_q.fan_in && first_of_list && !run_q.op0 ? FuncNone : run_q.func;
    job_o.dtype = run_q.dtype;
    job_o.swap = run_q.swap;
    job_o.wide = run_q.fan_in && run_q.func inside {FuncSum, FuncProd} &&
                 run_q.dtype inside {DatatypeFp16, DatatypeBf16};
    job_o.op0 = run_q.bytes == '0 ? Op0None : run_q.fan_in && !first_of_list ? Op0Accumulator
                : run_q.op0_use.used ? Op0Stream : run_q.op0 ? Op0Memory : Op0None;
    job_o.op0_address = run_q.op0_use.used ? run_q.op0_address : run_q.op0_address + address_t'(progress_q.position);
    job_o.op1 = run_q.bytes == '0 ? Op1None : offered_q ? Op1Bypass
                : (run_q.arrival || run_q.op1_memory) ? Op1Memory : Op1None;
    job_o.op1_address = run_q.arrival
        ? BufferBase + address_t'(segment_q.buffer) * address_t'(BufferBytes)
        : run_q.op1_address + address_t'(progress_q.position);
    job_o.releases = run_q.arrival && !offered_q && !keeps && run_q.bytes != '0;
    job_o.buffer = segment_q.buffer;
    job_o.accumulate = partial;
    job_o.local_ = run_q.local_ && run_q.bytes != '0 && !partial && !keeps;
    job_o.local_address = run_q.local_use.used ? run_q.local_address
                                          : run_q.local_address + address_t'(progress_q.position);
    job_o.stream = job_o.local_ && run_q.local_use.used;
    job_o.starts = progress_q.position == '0;
    job_o.send = run_q.send && !partial;
    job_o.transmit.communicator = context_i.communicator;
    job_o.transmit.peer = run_q.peer;
    job_o.transmit.session = peer_i.session;
    job_o.transmit.control = 1'b0;
    job_o.transmit.header.type_ = run_q.eager ? MessageTypeEager : MessageTypeWrite;
    job_o.transmit.header.dtype = 8'(run_q.dtype);
    job_o.transmit.header.first = progress_q.position == '0;
    job_o.transmit.header.last = last_segment;
    job_o.transmit.header.point_to_point = context_i.point_to_point;
    job_o.transmit.header.communicator = communicator_i.number;
    job_o.transmit.header.epoch = communicator_i.epoch;
    job_o.transmit.header.source = 32'(communicator_i.rank);
    job_o.transmit.header.destination = 32'(run_q.peer);
    job_o.transmit.header.sequence_ = context_i.sequence_;
    job_o.transmit.header.tag = context_i.point_to_point ? context_i.tag : 32'(run_q.tag);
    job_o.transmit.header.segment_bytes = 32'(bytes_q);
    job_o.transmit.header.message_bytes = run_q.bytes;
    job_o.transmit.header.offset = progress_q.position;
    job_o.transmit.header.signature = context_i.signature;
    if (run_q.send && !run_q.eager) begin
      job_o.transmit.header.token_slot = grant_word.slot;
      job_o.transmit.header.token_generation = grant_word.generation;
    end
    // A put says where in the window it ends, so that every segment tells whether all of it fits.
    if (run_q.put) begin
      job_o.transmit.header.type_ = MessageTypeWrite;
      job_o.transmit.header.first = 1'b0;
      job_o.transmit.header.sequence_ = 32'({id_q.slot, remote_generation_i});
      job_o.transmit.header.message_bytes = message_bytes_t'(run_q.op1_address) + run_q.bytes;
      job_o.transmit.header.offset = message_bytes_t'(run_q.op1_address) + progress_q.position;
      job_o.transmit.header.token_slot = 16'(WindowSlot);
      job_o.transmit.header.token_generation = '0;
    end
    // A request has the message's header, and nothing else.
    if (asks_q) begin
      job_o.last = 1'b0;
      job_o.wakes = 1'b0;
      job_o.op0 = Op0None;
      job_o.op1 = Op1None;
      job_o.releases = 1'b0;
      job_o.accumulate = 1'b0;
      job_o.local_ = 1'b0;
      job_o.stream = 1'b0;
      job_o.send = 1'b1;
      job_o.transmit.header.type_ = MessageTypeRequest;
      job_o.transmit.header.first = 1'b1;
      job_o.transmit.header.last = 1'b1;
      job_o.transmit.header.offset = '0;
      job_o.transmit.header.token_slot = '0;
      job_o.transmit.header.token_generation = '0;
    end
  end

endmodule
