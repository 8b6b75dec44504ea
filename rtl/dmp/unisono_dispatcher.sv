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
// This module joins its parts: who is kicked, tables by pair and by move, the run of a move that issues, lists, how
// much may go, which lane, the steps of a look, and the job.
//
// Latency: from issue to job 9 cycles without arrival and send; asking for credit or space adds what that takes.
// Throughput: one look in 5 to 8 cycles; a segment of 64 words takes 64 in the lane.

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

  // A point-to-point message may begin that was held.
  input  logic           turn_kick_valid_i,
  output logic           turn_kick_ready_o,
  input  move_id_t       turn_kick_id_i,

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
  // Members that are not there are sent nothing.
  // verilator lint_off UNUSEDSIGNAL
  input  peer_entry_t   peer_i,
  // verilator lint_on UNUSEDSIGNAL

  // Credit for one eager message.
  output logic          credit_take_o,
  output logic [15:0]   credit_keep_o,             // left to others
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

  // A look and its memories.
  look_t look;
  run_t run, next_run, run_read;
  progress_t progress_read, progress_write;
  // Of these the look itself uses more.
  // verilator lint_off UNUSEDSIGNAL
  progress_t progress;
  segment_t segment;
  // verilator lint_on UNUSEDSIGNAL
  given_t given;
  move_id_t next_id;
  takes_t takes;
  memory_command_t memory;
  logic live;
  // What its parts know.
  lowered_t lowered;
  list_t list;
  size_t size;
  grant_t grant;
  // What it does.
  answers_t answers;
  state_t state;
  events_t events;
  list_command_e list_command;
  lane_command_t lane_command;
  pair_t send_pair;
  logic sweeps;                           // after a reset: everything is lowered, whatever the memories held before

  assign send_pair = '{slot: look.id.slot, peer: run.peer};
  assign sweeps = look.step == StepSweep;

  // ------------------------------------------------------------------------------------------------- kicks

  logic pop_valid, kick_sends;
  move_id_t pop_id;
  pair_t kick_pair;
  entry_t kick_sender;
  unisono_dispatcher_kicks u_kicks (
    .clk_i, .rst_ni, .sweeps_i(sweeps), .sweep_pair_i(send_pair), .again_valid_i(events.again), .again_id_i(look.id),
    .grant_valid_i, .grant_ready_o, .grant_pair_i, .kick_valid_i, .kick_ready_o, .kick_id_i,
    .follow_kick_valid_i, .follow_kick_ready_o, .follow_kick_id_i,
    .stream_kick_valid_i, .stream_kick_ready_o, .stream_kick_id_i,
    .turn_kick_valid_i, .turn_kick_ready_o, .turn_kick_id_i,
    .credit_valid_i(credit_event_valid_i), .credit_ready_o(credit_event_ready_o),
    .credit_communicator_i(credit_event_communicator_i), .credit_peer_i(credit_event_peer_i), .communicators_i,
    .pair_o(kick_pair), .sends_i(kick_sends), .sender_i(kick_sender),
    .next_valid_o(pop_valid), .next_take_i(takes.next), .next_id_o(pop_id)
  );

  // ------------------------------------------------------------------------------------------------ tables

  logic begins, ends, pair_sends, granted, parity;
  logic [1:0] forget;
  logic [Calls-1:0] holds;
  rank_t begins_peer;
  entry_t pair_sender;
  unisono_dispatcher_pairs u_pairs (
    .clk_i, .rst_ni, .pair_i(send_pair), .sends_o(pair_sends), .sender_o(pair_sender), .granted_o(granted),
    .parity_o(parity), .grant_o(grant), .ends_i(ends), .forget_i(forget), .begin_valid_i(begins),
    .begin_pair_i('{slot: look.id.slot, peer: begins_peer}), .begin_entry_i(look.id.entry),
    .kick_pair_i(kick_pair), .kick_sends_o(kick_sends), .kick_sender_o(kick_sender),
    .grant_valid_i(grant_valid_i && grant_ready_o), .grant_pair_i,
    .grant_i('{generation: grant_generation_i, slot: grant_slot_i, limit: grant_limit_i}),
    .sweeps_i(sweeps), .holds_o(holds)
  );
  unisono_dispatcher_runs u_runs (
    .clk_i, .move_valid_i, .move_id_i,
    .move_i('{source: move_source_i, sink: move_sink_i, peers: move_sends_i, move: move_i}),
    .next_id_i(next_id), .read_move_i(memory.read_move), .read_run_i(memory.read_run), .move_o(given), .run_o(run_read),
    .progress_o(progress_read), .live_o(live), .id_i(look.id), .run_write_i(memory.run_write), .run_i(lowered.run),
    .progress_write_i(memory.progress_write), .progress_i(progress_write), .live_raise_i(memory.live_raise),
    .live_clear_i(memory.live_clear)
  );

  // ------------------------------------------------------------------------------------------------- look

  message_bytes_t move_bytes, next_position;
  segment_bytes_t arrives_bytes;
  logic early_take, early_keep, ask_credit, ask_keep, binds, ready, measures, arrives, overtakes;
  unisono_dispatcher_lower u_lower (
    .clk_i, .rst_ni, .step_i(look.step), .issue_valid_i(takes.issue), .issue_generation_i,
    .given_i(given), .communicator_i, .point_to_point_i(context_i.point_to_point), .region_o(binding_region_o), .region_asks_o(binding_asks_o), .binding_i,
    .bytes_o(move_bytes), .free_i(follow_free_i && !held_i && stream_ready_i),
    .credit_take_o(early_take), .credit_keep_o(early_keep), .credit_ready_i, .credit_answer_i, .credit_granted_i,
    .binds_o(binds), .ready_o(ready), .lowered_o(lowered)
  );
  unisono_dispatcher_lists u_lists (
    .clk_i, .rst_ni, .command_i(list_command), .pool_i(run.pool), .pool_index_o, .pool_word_i,
    .fan_out_i(run.fan_out), .made_i(progress.made), .peers_i(progress.peers), .peer_i(progress.peer), .list_o(list)
  );
  unisono_dispatcher_size u_size (
    .clk_i, .rst_ni, .step_i(look.step), .run_i(run), .position_i(progress.position), .segment_bytes_i(segment.bytes),
    .measures_i(measures), .next_bytes_i(next_run.bytes), .next_segment_i(next_run.segment),
    .next_position_i(next_position), .arrives_i(arrives), .arrives_bytes_i(arrives_bytes),
    .issued_bytes_i(lowered.run.bytes), .issued_segment_i(lowered.run.segment), .granted_i(granted), .parity_i(parity), .grant_i(grant), .size_o(size)
  );
  unisono_dispatcher_lane u_lane (
    .clk_i, .rst_ni, .run_i(run), .next_run_i(next_run), .busy_i(order_busy_i), .overtakes_o(overtakes),
    .command_i(lane_command), .lane_o(job_lane_o)
  );

  // Its producers must have made what the next segment reads, and its elements, or their room, must be there, before
  // credit and space are asked for, which would otherwise be held meanwhile.
  assign state = '{
    point_to_point: context_i.point_to_point,
    to_switch: communicator_i.members != '0 && !run.fan_out && {1'b0, run.peer} >= communicator_i.members,
    free: follow_free_i,
    follows: follow_free_i || !follow_limited_i || size.end_ <= follow_limit_i,
    streams: stream_ready_i,
    held: held_i,
    remote_busy: remote_busy_i,
    overtakes: overtakes
  };
  assign answers = '{
    credit_ready: credit_ready_i, credit_answer: credit_answer_i, credit_granted: credit_granted_i,
    credit_back_ready: credit_back_ready_i, adopt_ready: adopt_ready_i, space_ready: space_ready_i,
    space_answer: space_answer_i, space_granted: space_granted_i, post_ready: post_ready_i,
    head_answer: head_answer_i, take_ready: take_ready_i, job_ready: job_ready_i
  };
  unisono_dispatcher_look u_look (
    .clk_i, .rst_ni, .clear_valid_i, .clear_slot_i, .offer_valid_i, .offer_id_i, .offer_bytes_i, .offer_total_i,
    .issue_valid_i, .issue_id_i, .wake_valid_i, .wake_id_i, .next_valid_i(pop_valid), .next_id_i(pop_id),
    .takes_o(takes), .look_o(look), .run_o(run), .progress_o(progress), .segment_o(segment), .next_id_o(next_id),
    .next_run_o(next_run), .next_position_o(next_position), .memory_o(memory), .progress_write_o(progress_write),
    .run_i(run_read), .progress_i(progress_read), .live_i(live), .peers_i(given.peers),
    .from_stream_i(given.source.used), .binds_i(binds), .ready_i(ready), .lowered_i(lowered),
    .list_command_o(list_command), .list_i(list), .pool_word_i, .measures_o(measures), .arrives_o(arrives),
    .arrives_bytes_o(arrives_bytes), .size_i(size), .lane_o(lane_command), .begins_o(begins),
    .begins_peer_o(begins_peer), .ends_o(ends), .forget_o(forget), .pair_sends_i(pair_sends),
    .pair_sender_i(pair_sender), .holds_i(holds[look.id.slot]), .state_i(state), .ask_credit_o(ask_credit),
    .ask_keep_o(ask_keep),
    .ask_credit_back_o(credit_back_o), .ask_adopt_o(adopt_valid_o), .ask_space_o(space_valid_o),
    .ask_post_o(post_valid_o), .ask_head_o(head_valid_o), .ask_take_o(take_valid_o), .ask_job_o(job_valid_o),
    .answers_i(answers),
    .head_i, .events_o(events)
  );
  unisono_dispatcher_job #(.BufferBase(BufferBase), .BufferBytes(BufferBytes)) u_job (
    .look_i(look), .run_i(run), .list_i(list), .position_i(progress.position), .size_last_i(size.last),
    .buffer_i(segment.buffer), .grant_i(grant), .context_i, .communicator_i, .session_i(peer_i.session),
    .put_generation_i(remote_generation_i), .job_o
  );

  // ------------------------------------------------------------------------------------------------- ports

  assign clear_done_o = look.cleared;
  assign issue_ready_o = takes.issue;
  assign wake_ready_o = takes.wake;
  assign offer_answer_o = takes.offer_answer;
  assign offer_accepted_o = takes.offer_accepted;

  assign pool_slot_o = look.id.slot;
  assign context_slot_o = look.id.slot;
  assign binding_slot_o = look.id.slot;
  assign peer_communicator_o = context_i.communicator;
  assign peer_rank_o = look.step == StepDecode ? lowered.run.peer : run.peer;
  assign order_peer_o = run.peer;

  assign credit_take_o = early_take || ask_credit;
  assign credit_keep_o = ask_keep || early_keep ? 16'(communicator_i.kept) : '0;
  assign credit_communicator_o = context_i.communicator;
  assign credit_peer_o = look.step == StepBind0 ? rank_t'(given.move.remote.peer) : run.peer;
  assign adopt_pair_o = send_pair;
  assign space_session_o = peer_i.session;
  assign space_bytes_o = look.bytes;

  assign post_o = '{id: look.id, peer: run.source, tag: given.move.arrival.tag, bytes: run.bytes,
                    rendezvous: !run.eager && !context_i.point_to_point, fan_in: run.fan_in,
                    generation: run.generation};
  assign head_pair_o = '{slot: look.id.slot, peer: run.source};
  assign head_entry_o = look.id.entry;
  assign take_pair_o = '{slot: look.id.slot, peer: run.source};

  assign follow_id_o = next_id;
  assign follow_waits_o = events.follow_waits;
  assign announced_o = events.announced;
  assign remote_begin_o = events.remote_begin;
  assign remote_o = '{id: look.id, peer: run.peer, get: run.get, dtype: run.dtype,
                      offset: message_bytes_t'(run.op1_address), bytes: run.bytes, address: run.local_address};

  // A move that issues is asked about as a whole.
  assign stream_source_o = look.step == StepBind0 ? given.source : run.op0_use;
  assign stream_sink_o = look.step == StepBind0 ? given.sink : run.local_use;
  assign stream_bytes_o = look.step == StepBind0 ? move_bytes : message_bytes_t'(size.own);
  assign stream_waits_o = events.stream_waits;
  assign stream_take_source_o = job_valid_o && job_ready_i && job_o.op0 == Op0Stream;
  assign stream_take_sink_o = job_valid_o && job_ready_i && job_o.stream;
  assign stream_take_bytes_o = look.bytes;
  assign stream_take_first_o = progress.position == '0;
  assign stream_take_last_o = size.last;

  assign consumed_valid_o = events.consumed;
  assign sent_valid_o = events.sent;
  assign complete_valid_o = events.complete;
  assign event_id_o = look.id;
  assign event_generation_o = look.step == StepDecode ? lowered.run.generation : run.generation;
  assign fail_valid_o = events.fail;
  assign fail_slot_o = look.id.slot;
  assign fail_code_o = ErrorCodeInvalidArgument;

  assign look_valid_o = events.begins;
  assign park_valid_o = events.parks;
  always_comb begin
    case (look.step)
      StepPost, StepHead: park_cause_o = unisono_observe_pkg::WaitArrival;
      StepCredit: park_cause_o = events.follow_waits ? unisono_observe_pkg::WaitProducer
                                                     : unisono_observe_pkg::WaitSpace;
      // A short message asks to be granted for want of credit only.
      StepGrants, StepSize, StepOpen: park_cause_o = progress.requested &&
                                           run.bytes <= message_bytes_t'(communicator_i.eager_limit)
                                           ? unisono_observe_pkg::WaitCredit : unisono_observe_pkg::WaitGrant;
      StepSpace: park_cause_o = unisono_observe_pkg::WaitSpace;
      StepDispatch: park_cause_o = !look.asks ? unisono_observe_pkg::WaitNone
                                   : run.eager ? unisono_observe_pkg::WaitCredit : unisono_observe_pkg::WaitGrant;
      default: park_cause_o = unisono_observe_pkg::WaitNone;
    endcase
  end

endmodule
