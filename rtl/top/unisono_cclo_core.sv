// The core of the engine: from moves to jobs, lane and receive buffers. Around it stand the microcontroller and the
// call front end, which give it moves and contexts; Tx and Rx; and the data movers.
//
// Latency, throughput: see its parts.

// Not every output of a part is needed here.
// verilator lint_off PINCONNECTEMPTY

module unisono_cclo_core
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_core_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter logic [63:0] BufferBase = 64'h0,
  parameter int unsigned BufferBytes = 8192,
  parameter int unsigned BypassWords = 64,
  parameter int unsigned StreamPorts = 0,              // of kernels, in each direction
  parameter int unsigned StreamWords = 256,            // queue of each
  localparam int unsigned Wires = StreamPorts > 0 ? StreamPorts : 1
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Moves of the active calls, in program order of each.
  input  logic  move_valid_i, move_end_i,                // end: instead of a move, the program has no more
  output logic  move_ready_o,
  input  slot_t move_slot_i,
  input  move_t move_i,
  output logic [Calls-1:0][EntryWidth:0] room_o,         // places in each window
  output logic  finished_valid_o,                        // all moves of a program are complete
  output slot_t finished_slot_o,
  // Words of the constant pools: for each slot the lists of its program. Written before the first move that names one.
  input  logic        pool_write_i,
  input  slot_t       pool_write_slot_i,
  input  pool_index_t pool_write_index_i,
  input  rank_t       pool_write_word_i,

  // The active calls.
  // A slot's call is cleared: held until done, and then taken back. Afterwards nothing of it writes memory or is sent,
  // and the slot can have another call. A call that failed gives back what it holds; one that finished, or a slot that
  // has had none, holds nothing. No moves of the slot come meanwhile, and its context stays.
  input  logic                clear_valid_i, clear_failed_i,
  input  slot_t               clear_slot_i,
  output logic                clear_done_o,
  output logic [BufferWidth:0] free_buffers_o,
  // A communicator begins anew.
  input  logic                begins_valid_i,
  input  communicator_t       begins_communicator_i,
  input  logic [Calls-1:0]    active_i,
  input  call_context_t       contexts_i [Calls],
  input  communicator_entry_t communicators_i [Calls],   // of each slot's call
  output slot_t    binding_slot_o,
  output region_e  binding_region_o,
  input  binding_t binding_i,                            // one cycle later
  output logic        fail_valid_o,
  output slot_t       fail_slot_o,
  output error_code_e fail_code_o,

  // Peers; answered one cycle later. One question of the dispatcher, one of the receive-buffer manager.
  output communicator_t peer_communicator_o [2],
  output rank_t         peer_rank_o [2],
  input  peer_entry_t   peer_i [2],

  // Credit.
  output logic          credit_take_o,
  output logic [15:0]   credit_keep_o,                   // left to others
  input  logic          credit_ready_i,
  output communicator_t credit_communicator_o,
  output rank_t         credit_peer_o,
  input  logic          credit_answer_i, credit_granted_i,
  output logic          credit_back_o,                   // one is given back, of the same names
  input  logic          credit_back_ready_i,
  input  logic          credit_event_valid_i,
  output logic          credit_event_ready_o,
  input  communicator_t credit_event_communicator_i,
  input  rank_t         credit_event_peer_i,
  output logic          owed_valid_o,
  input  logic          owed_ready_i,
  output communicator_t owed_communicator_o,
  output rank_t         owed_peer_o,

  // Space in the transport.
  output logic           space_valid_o,
  input  logic           space_ready_i,
  output session_t       space_session_o,
  output segment_bytes_t space_bytes_o,
  input  logic           space_answer_i, space_granted_i,

  // Data to send, of the compute lane (0) and of the send lane (1), and grants.
  output logic [1:0]      transmit_valid_o,
  input  logic [1:0]      transmit_ready_i,
  output transmit_t [1:0] transmit_o,
  output logic [1:0]      send_valid_o, send_last_o,
  input  logic [1:0]      send_ready_i,
  output logic [1:0][DataBytes*8-1:0] send_data_o,
  output logic [1:0][DataBytes-1:0]   send_keep_o,
  output slot_t [1:0]     send_slot_o,
  input  logic            send_error_valid_i,            // Tx refused words of this slot
  input  slot_t           send_error_slot_i,
  output logic            control_valid_o,
  input  logic            control_ready_i,
  output transmit_t       control_o,

  // What has come.
  input  logic                   received_valid_i,
  output logic                   received_ready_o,
  input  received_t              received_i,
  input  logic                   payload_valid_i, payload_last_i,
  output logic                   payload_ready_o,
  input  logic [DataBytes*8-1:0] payload_data_i,
  input  logic [DataBytes-1:0]   payload_keep_i,

  // The window of a communicator, in the same cycle; and what this engine tells peers about puts and gets.
  output communicator_t  window_communicator_o,
  input  binding_t       window_i,
  input  segment_bytes_t window_segment_i,               // the communicator's longest segment
  output logic           notice_valid_o,
  input  logic           notice_ready_i,
  output notice_t        notice_o,

  // Readers of op0, of op1, and of what is only sent.
  output logic [2:0]             read_command_valid_o,
  input  logic [2:0]             read_command_ready_i,
  output address_t               read_command_address_o [3],
  output segment_bytes_t         read_command_bytes_o [3],
  input  logic [2:0]             read_valid_i, read_last_i, read_error_i,
  output logic [2:0]             read_ready_o,
  input  logic [DataBytes*8-1:0] read_data_i [3],
  input  logic [DataBytes-1:0]   read_keep_i [3],

  // Writers of results (0) and of receive buffers (1).
  output logic [1:0]             write_command_valid_o,
  input  logic [1:0]             write_command_ready_i,
  output address_t               write_command_address_o [2],
  output segment_bytes_t         write_command_bytes_o [2],
  output logic [1:0]             write_valid_o, write_last_o,
  input  logic [1:0]             write_ready_i,
  output logic [DataBytes*8-1:0] write_data_o [2],
  output logic [DataBytes-1:0]   write_keep_o [2],
  input  logic [1:0]             written_valid_i, written_error_i,

  // Streams of kernels: to the engine, and to kernels. Which regions of the active calls are streams; such a region's
  // address is the port.
  input  logic [Wires-1:0]                  stream_in_valid_i, stream_in_last_i,
  output logic [Wires-1:0]                  stream_in_ready_o,
  input  logic [Wires-1:0][DataBytes*8-1:0] stream_in_data_i,
  input  logic [Wires-1:0][DataBytes-1:0]   stream_in_keep_i,
  output logic [Wires-1:0]                  stream_out_valid_o, stream_out_last_o,
  input  logic [Wires-1:0]                  stream_out_ready_i,
  output logic [Wires-1:0][DataBytes*8-1:0] stream_out_data_o,
  output logic [Wires-1:0][DataBytes-1:0]   stream_out_keep_o,
  output logic [Wires-1:0]                  stream_out_cut_o,      // the packet was cut off
  input  logic [Calls-1:0]                  src_stream_i, dst_stream_i,
  input  stream_port_t [Calls-1:0]          src_port_i, dst_port_i,

  // Plugins.
  output logic                   plugin_valid_o, plugin_use0_o, plugin_use1_o, plugin_swap_o, plugin_last_o,
  input  logic                   plugin_ready_i,
  output logic [DataBytes*8-1:0] plugin_op0_o, plugin_op1_o,
  output func_e                  plugin_func_o,
  output datatype_e              plugin_dtype_o,
  output logic [DataBytes-1:0]   plugin_keep_o,
  input  logic                   result_valid_i, result_last_i,
  output logic                   result_ready_o,
  input  logic [DataBytes*8-1:0] result_data_i,
  input  logic [DataBytes-1:0]   result_keep_i,

  // What happens in this cycle, for counters, and records of moves that have retired.
  input  logic [47:0]            cycle_i,
  output unisono_observe_pkg::events_t events_o,
  output logic                   record_valid_o,
  output move_record_t           record_o
);

  // ----------------------------------------------------------------------------------------------- clearing

  clear_step_t clear;
  logic dispatcher_cleared, rbm_cleared, front_idle, lanes_idle;
  logic [Calls-1:0] clearing, active;
  unisono_core_clear u_clear (
    .clk_i, .rst_ni, .valid_i(clear_valid_i), .slot_i(clear_slot_i), .done_o(clear_done_o), .step_o(clear),
    .clearing_o(clearing), .front_idle_i(front_idle), .dispatcher_done_i(dispatcher_cleared),
    .buffers_done_i(rbm_cleared), .lanes_idle_i(lanes_idle), .active_i, .active_o(active)
  );

  // ----------------------------------------------------------------------------------------- moves, windows

  logic params_asks, dispatcher_asks, params_read_valid, params_read_ready, params_word_valid, params_word_ready;
  slot_t params_slot, dispatcher_slot, close_slot;
  region_e dispatcher_region;
  address_t params_address;
  stream_regions_t stream_regions;
  logic [Calls-1:0][RankWidth:0] sizes;
  communicator_t [Calls-1:0] slot_communicators;
  logic push_valid, push_ready, close_valid;
  entering_t entering;
  move_id_t push_id;
  rooms_t window_room;
  cause_t [9:0] causes;

  assign stream_regions = '{src: src_stream_i, dst: dst_stream_i, src_port: src_port_i, dst_port: dst_port_i};
  for (genvar s = 0; s < int'(Calls); s++) begin : gen_slot
    assign sizes[s] = communicators_i[s].size;
    assign slot_communicators[s] = contexts_i[s].communicator;
  end

  unisono_core_moves #(.DataBytes(DataBytes), .StreamPorts(StreamPorts)) u_moves (
    .clk_i, .rst_ni, .move_valid_i, .move_ready_o, .move_slot_i, .move_i, .move_end_i,
    .pool_write_i, .pool_i({pool_write_slot_i, pool_write_index_i, pool_write_word_i}), .streams_i(stream_regions),
    .sizes_i(sizes), .drains_i(clear.drains), .forgets_i(clear.window), .clear_slot_i, .clearing_i(clearing),
    .idle_o(front_idle), .binding_valid_o(params_asks), .binding_ready_i(!dispatcher_asks),
    .binding_slot_o(params_slot), .binding_i,
    .read_command_valid_o(params_read_valid), .read_command_ready_i(params_read_ready),
    .read_command_address_o(params_address), .read_valid_i(params_word_valid), .read_ready_o(params_word_ready),
    .read_data_i(read_data_i[1]), .read_error_i(read_error_i[1]),
    .push_valid_o(push_valid), .push_ready_i(push_ready), .push_o(entering), .close_valid_o(close_valid),
    .close_slot_o(close_slot), .window_room_i(window_room), .room_o,
    .malformed_o(causes[1]), .params_o(causes[6]), .no_stream_o(causes[8])
  );
  // The dispatcher's questions go first.
  assign binding_slot_o = params_asks && !dispatcher_asks ? params_slot : dispatcher_slot;
  assign binding_region_o = params_asks && !dispatcher_asks ? RegionParams : dispatcher_region;

  logic issue_valid, issue_ready, consumed_valid, sent_valid, complete_valid, turn_valid, retired_valid;
  move_of_t issue, looked, complete, turn, remote_done;   // looked: the move that the dispatcher looks at
  logic [Calls-1:0][GenerationWidth-1:0] generations;
  move_id_t retired_id, follow_id, follow_kick_id, turn_kick_id;
  logic follow_free, follow_limited, follow_waits, follow_kick_valid, follow_kick_ready;
  message_bytes_t follow_limit;
  logic end_valid, remote_complete, partner_valid, announced, send_held, turn_kick_valid, turn_kick_ready;
  job_end_t job_end;
  partner_t partner;
  slot_t context_slot, rbm_slot, pool_slot;

  unisono_core_window u_window (
    .clk_i, .rst_ni, .clear_valid_i(clear.window), .clear_slot_i, .clearing_i(clearing), .contexts_i,
    .push_valid_i(push_valid), .push_ready_o(push_ready), .push_i(entering), .push_id_o(push_id),
    .close_valid_i(close_valid), .close_slot_i(close_slot), .finished_valid_o, .finished_slot_o,
    .room_o(window_room), .generations_o(generations), .cause_o(causes[2]),
    .issue_valid_o(issue_valid), .issue_ready_i(issue_ready), .issue_o(issue),
    .turn_valid_i(turn_valid), .turn_i(turn), .consumed_valid_i(consumed_valid), .sent_valid_i(sent_valid),
    .event_i(looked), .complete_valid_i(complete_valid), .complete_i(complete),
    .retired_valid_o(retired_valid), .retired_id_o(retired_id),
    .made_valid_i(end_valid || remote_complete), .made_all_i(remote_complete),
    .made_i(remote_complete ? remote_done : '{id: job_end.id, generation: job_end.generation}),
    .made_bytes_i(job_end.made), .follow_id_i(follow_id), .follow_free_o(follow_free),
    .follow_limited_o(follow_limited), .follow_limit_o(follow_limit), .follow_waits_i(follow_waits),
    .follow_kick_valid_o(follow_kick_valid), .follow_kick_ready_i(follow_kick_ready),
    .follow_kick_id_o(follow_kick_id), .partner_valid_o(partner_valid), .partner_o(partner),
    .announced_i(announced), .held_slot_i(context_slot), .held_o(send_held), .turn_kick_valid_o(turn_kick_valid),
    .turn_kick_ready_i(turn_kick_ready), .turn_kick_id_o(turn_kick_id)
  );

  // ------------------------------------------------------------------------------------------- dispatcher

  pool_index_t pool_index;
  rank_t pool_word, order_peer;
  logic wake_valid, wake_ready, owed_in_valid;
  member_t owed_in, owed_out;
  logic grant_valid, grant_ready, post_valid, post_ready, head_valid, head_answer, take_valid, take_ready;
  logic kick_valid, kick_ready, offer_valid, offer_answer, offer_accepted, job_valid, job_lane;
  logic [1:0] lane_ready, order_busy;
  logic send_end_valid, send_end_ready, adopt_valid, adopt_ready;
  job_end_t send_end;
  pair_t grant_pair, head_pair, take_pair, adopt_pair;
  message_bytes_t grant_limit;
  logic [15:0] grant_slot, grant_generation;
  post_t post;
  segment_t head;
  entry_t head_entry;
  move_id_t wake_id, kick_id, offer_id;
  segment_bytes_t offer_bytes;
  message_bytes_t offer_total;
  job_t job;
  logic look_valid, park_valid, lanes_starve, dispatcher_complete;
  unisono_observe_pkg::wait_e park_cause;
  logic remote_busy, remote_begins;
  logic [15:0] remote_generation;
  operation_t remote;
  logic asks_space, asks_ready, asks_answer;
  question_t asks;
  logic stream_ready, stream_waits, stream_kick_valid, stream_kick_ready;
  stream_use_t move_source, move_sink;
  stream_ask_t stream_ask;
  stream_take_t stream_take;
  move_id_t stream_kick_id;

  unisono_dispatcher #(.BufferBase(BufferBase), .BufferBytes(BufferBytes)) u_dispatcher (
    .clk_i, .rst_ni,
    .clear_valid_i(clear.dispatcher), .clear_slot_i, .clear_done_o(dispatcher_cleared),
    .move_valid_i(push_valid && push_ready), .move_id_i(push_id), .move_i(entering.move), .move_sends_i(entering.sends),
    .move_source_i(move_source), .move_sink_i(move_sink),
    .stream_source_o(stream_ask.source), .stream_sink_o(stream_ask.sink), .stream_bytes_o(stream_ask.bytes),
    .stream_ready_i(stream_ready), .stream_waits_o(stream_waits),
    .stream_take_source_o(stream_take.source), .stream_take_sink_o(stream_take.sink),
    .stream_take_bytes_o(stream_take.bytes), .stream_take_first_o(stream_take.first),
    .stream_take_last_o(stream_take.last),
    .stream_kick_valid_i(stream_kick_valid), .stream_kick_ready_o(stream_kick_ready),
    .stream_kick_id_i(stream_kick_id), .turn_kick_valid_i(turn_kick_valid), .turn_kick_ready_o(turn_kick_ready),
    .turn_kick_id_i(turn_kick_id), .issue_valid_i(issue_valid), .issue_ready_o(issue_ready), .issue_id_i(issue.id),
    .issue_generation_i(issue.generation),
    .follow_id_o(follow_id), .follow_free_i(follow_free), .follow_limited_i(follow_limited),
    .follow_limit_i(follow_limit), .follow_waits_o(follow_waits), .follow_kick_valid_i(follow_kick_valid),
    .follow_kick_ready_o(follow_kick_ready), .follow_kick_id_i(follow_kick_id),
    .pool_slot_o(pool_slot), .pool_index_o(pool_index), .pool_word_i(pool_word),
    .context_slot_o(context_slot), .context_i(contexts_i[context_slot]),
    .communicator_i(communicators_i[context_slot]), .communicators_i(slot_communicators),
    .held_i(send_held), .announced_o(announced),
    .binding_slot_o(dispatcher_slot), .binding_region_o(dispatcher_region), .binding_asks_o(dispatcher_asks),
    .binding_i, .peer_communicator_o(peer_communicator_o[0]), .peer_rank_o(peer_rank_o[0]), .peer_i(peer_i[0]),
    .credit_take_o, .credit_keep_o, .credit_ready_i, .credit_communicator_o, .credit_peer_o, .credit_answer_i,
    .credit_granted_i, .credit_back_o, .credit_back_ready_i,
    .credit_event_valid_i, .credit_event_ready_o, .credit_event_communicator_i, .credit_event_peer_i,
    .adopt_valid_o(adopt_valid), .adopt_pair_o(adopt_pair), .adopt_ready_i(adopt_ready),
    .grant_valid_i(grant_valid), .grant_ready_o(grant_ready), .grant_pair_i(grant_pair),
    .grant_limit_i(grant_limit), .grant_slot_i(grant_slot), .grant_generation_i(grant_generation),
    .space_valid_o(asks_space), .space_ready_i(asks_ready), .space_session_o(asks.session),
    .space_bytes_o(asks.bytes), .space_answer_i(asks_answer), .space_granted_i,
    .post_valid_o(post_valid), .post_ready_i(post_ready), .post_o(post),
    .head_valid_o(head_valid), .head_pair_o(head_pair), .head_entry_o(head_entry), .head_answer_i(head_answer),
    .head_i(head), .take_valid_o(take_valid), .take_pair_o(take_pair), .take_ready_i(take_ready),
    .kick_valid_i(kick_valid), .kick_ready_o(kick_ready), .kick_id_i(kick_id),
    .wake_valid_i(wake_valid), .wake_ready_o(wake_ready), .wake_id_i(wake_id),
    .offer_valid_i(offer_valid), .offer_id_i(offer_id), .offer_bytes_i(offer_bytes),
    .offer_total_i(offer_total),
    .offer_answer_o(offer_answer), .offer_accepted_o(offer_accepted),
    .remote_busy_i(remote_busy), .remote_generation_i(remote_generation),
    .remote_begin_o(remote_begins), .remote_o(remote),
    .job_valid_o(job_valid), .job_ready_i(lane_ready[job_lane]), .job_o(job), .job_lane_o(job_lane),
    .order_peer_o(order_peer), .order_busy_i(order_busy),
    .consumed_valid_o(consumed_valid), .sent_valid_o(sent_valid),
    .complete_valid_o(dispatcher_complete), .event_id_o(looked.id), .event_generation_o(looked.generation),
    .fail_valid_o(causes[3].valid), .fail_slot_o(causes[3].slot), .fail_code_o(causes[3].code),
    .look_valid_o(look_valid), .park_valid_o(park_valid), .park_cause_o(park_cause)
  );

  // Puts and gets, and what passes them on its way to buffers.
  logic serve_valid, serve_ready, remote_valid, remote_ready, segment_valid, segment_ready, words_valid, words_ready;
  logic buffer_command_valid, buffer_command_ready, buffer_valid, buffer_ready, buffer_written, buffer_error;
  address_t buffer_address;
  segment_bytes_t buffer_bytes;
  job_t serve_job;
  unisono_core_remote u_remote (
    .clk_i, .rst_ni, .clear_valid_i(clear.window || clear.dispatcher), .clear_slot_i, .contexts_i,
    .generations_i(generations), .ask_id_i(looked.id), .busy_o(remote_busy), .generation_o(remote_generation),
    .begin_valid_i(remote_begins), .begin_i(remote), .received_valid_i, .received_ready_o, .received_i,
    .payload_valid_i, .payload_ready_o, .payload_last_i,
    .pass_received_valid_o(segment_valid), .pass_received_ready_i(segment_ready),
    .pass_payload_valid_o(words_valid), .pass_payload_ready_i(words_ready),
    .buffer_command_valid_i(buffer_command_valid), .buffer_command_ready_o(buffer_command_ready),
    .buffer_command_address_i(buffer_address), .buffer_command_bytes_i(buffer_bytes),
    .buffer_valid_i(buffer_valid), .buffer_ready_o(buffer_ready), .buffer_written_o(buffer_written),
    .buffer_error_o(buffer_error),
    .write_command_valid_o(write_command_valid_o[1]), .write_command_ready_i(write_command_ready_i[1]),
    .write_command_address_o(write_command_address_o[1]), .write_command_bytes_o(write_command_bytes_o[1]),
    .write_valid_o(write_valid_o[1]), .write_ready_i(write_ready_i[1]),
    .written_valid_i(written_valid_i[1]), .written_error_i(written_error_i[1]),
    .window_communicator_o, .window_i, .window_segment_i, .notice_valid_o, .notice_ready_i, .notice_o,
    .complete_valid_o(remote_valid), .complete_ready_i(remote_ready), .complete_o(remote_done), .cause_o(causes[9]),
    .serve_valid_o(serve_valid), .serve_ready_i(serve_ready), .serve_o(serve_job),
    .asks_valid_i(asks_space), .asks_ready_o(asks_ready), .asks_i(asks), .asks_answer_o(asks_answer),
    .space_valid_o, .space_ready_i, .space_o({space_session_o, space_bytes_o}), .space_answer_i, .space_granted_i
  );
  assign write_data_o[1] = payload_data_i;
  assign write_keep_o[1] = payload_keep_i;
  assign write_last_o[1] = payload_last_i;

  unisono_ram_sdp #(.Width(RankWidth), .Depth(Calls * PoolWords)) u_pools (
    .clk_i, .wr_en_i(pool_write_i), .wr_addr_i({pool_write_slot_i, pool_write_index_i}),
    .wr_data_i(pool_write_word_i), .rd_en_i(1'b1), .rd_out_en_i(1'b1), .rd_addr_i({pool_slot, pool_index}),
    .rd_data_o(pool_word)
  );

  // ----------------------------------------------------------------------------------- receive buffers

  logic passing_valid, passing_ready, passing_last;
  logic [DataBytes*8-1:0] passing_data;
  logic [DataBytes-1:0] passing_keep;

  unisono_rbm #(.DataBytes(DataBytes), .BufferBase(BufferBase), .BufferBytes(BufferBytes)) u_rbm (
    .clk_i, .rst_ni,
    .clear_valid_i(clear.buffers), .clear_slot_i, .clear_failed_i, .clear_done_o(rbm_cleared), .free_buffers_o,
    .begins_valid_i, .begins_communicator_i, .partner_valid_i(partner_valid), .partner_i(partner),
    .sent_valid_i(sent_valid), .sent_slot_i(looked.id.slot), .active_i(active), .contexts_i,
    .communicator_slot_o(rbm_slot), .communicator_i(communicators_i[rbm_slot]),
    .received_valid_i(segment_valid), .received_ready_o(segment_ready), .received_i,
    .payload_valid_i(words_valid), .payload_ready_o(words_ready), .payload_data_i, .payload_keep_i, .payload_last_i,
    .write_command_valid_o(buffer_command_valid), .write_command_ready_i(buffer_command_ready),
    .write_command_address_o(buffer_address), .write_command_bytes_o(buffer_bytes),
    .write_valid_o(buffer_valid), .write_ready_i(buffer_ready), .write_data_o(), .write_keep_o(), .write_last_o(),
    .written_i(buffer_written), .written_error_i(buffer_error),
    .bypass_valid_o(passing_valid), .bypass_ready_i(passing_ready), .bypass_data_o(passing_data),
    .bypass_keep_o(passing_keep), .bypass_last_o(passing_last),
    .offer_valid_o(offer_valid), .offer_id_o(offer_id), .offer_bytes_o(offer_bytes),
    .offer_total_o(offer_total),
    .offer_answer_i(offer_answer), .offer_accepted_i(offer_accepted),
    .post_valid_i(post_valid), .post_ready_o(post_ready), .post_i(post),
    .head_valid_i(head_valid), .head_pair_i(head_pair), .head_entry_i(head_entry), .head_answer_o(head_answer),
    .head_o(head), .take_valid_i(take_valid), .take_pair_i(take_pair), .take_ready_o(take_ready),
    .kick_valid_o(kick_valid), .kick_ready_i(kick_ready), .kick_id_o(kick_id),
    .turn_valid_o(turn_valid), .turn_id_o(turn.id), .turn_generation_o(turn.generation),
    .adopt_valid_i(adopt_valid), .adopt_pair_i(adopt_pair), .adopt_ready_o(adopt_ready),
    .grant_valid_o(grant_valid), .grant_ready_i(grant_ready), .grant_pair_o(grant_pair),
    .grant_limit_o(grant_limit), .grant_slot_o(grant_slot), .grant_generation_o(grant_generation),
    .release_valid_i(end_valid && job_end.releases), .release_buffer_i(job_end.buffer),
    .owed_valid_o(owed_in_valid), .owed_communicator_o(owed_in.communicator), .owed_peer_o(owed_in.peer),
    .transmit_valid_o(control_valid_o), .transmit_ready_i(control_ready_i), .transmit_o(control_o),
    .peer_communicator_o(peer_communicator_o[1]), .peer_rank_o(peer_rank_o[1]), .peer_i(peer_i[1]),
    .fail_valid_o(causes[4].valid), .fail_slot_o(causes[4].slot), .fail_code_o(causes[4].code)
  );

  // ------------------------------------------------------------------------------------------------ lanes

  unisono_core_lanes #(
    .DataBytes(DataBytes), .BypassWords(BypassWords), .StreamPorts(StreamPorts), .StreamWords(StreamWords)
  ) u_lanes (
    .clk_i, .rst_ni, .job_valid_i(job_valid), .job_lane_i(job_lane), .job_ready_o(lane_ready), .job_i(job),
    .serve_valid_i(serve_valid), .serve_ready_o(serve_ready), .serve_i(serve_job),
    .order_peer_i(order_peer), .order_busy_o(order_busy),
    .stream_in_valid_i, .stream_in_ready_o, .stream_in_data_i, .stream_in_keep_i, .stream_out_valid_o,
    .stream_out_ready_i, .stream_out_data_o, .stream_out_keep_o, .stream_out_last_o, .stream_out_cut_o,
    .push_valid_i(push_valid && push_ready), .push_id_i(push_id), .push_move_i(entering.move),
    .push_source_o(move_source), .push_sink_o(move_sink), .close_valid_i(close_valid), .close_slot_i(close_slot),
    .clear_valid_i(clear.dispatcher && dispatcher_cleared), .clear_slot_i,
    .stream_id_i(looked.id), .stream_ask_i(stream_ask), .stream_ready_o(stream_ready),
    .stream_waits_i(stream_waits), .stream_take_i(stream_take), .stream_kick_valid_o(stream_kick_valid),
    .stream_kick_ready_i(stream_kick_ready), .stream_kick_id_o(stream_kick_id),
    .passing_valid_i(passing_valid), .passing_ready_o(passing_ready), .passing_data_i(passing_data),
    .passing_keep_i(passing_keep), .passing_last_i(passing_last),
    .params_command_valid_i(params_read_valid), .params_command_ready_o(params_read_ready),
    .params_address_i(params_address), .params_valid_o(params_word_valid), .params_ready_i(params_word_ready),
    .read_command_valid_o, .read_command_ready_i, .read_command_address_o, .read_command_bytes_o,
    .read_valid_i, .read_ready_o, .read_data_i, .read_keep_i, .read_last_i, .read_error_i,
    .write_command_valid_o(write_command_valid_o[0]), .write_command_ready_i(write_command_ready_i[0]),
    .write_command_address_o(write_command_address_o[0]), .write_command_bytes_o(write_command_bytes_o[0]),
    .write_valid_o(write_valid_o[0]), .write_ready_i(write_ready_i[0]), .write_data_o(write_data_o[0]),
    .write_keep_o(write_keep_o[0]), .write_last_o(write_last_o[0]),
    .written_valid_i(written_valid_i[0]), .written_error_i(written_error_i[0]),
    .plugin_valid_o, .plugin_ready_i, .plugin_op0_o, .plugin_op1_o, .plugin_use0_o, .plugin_use1_o,
    .plugin_func_o, .plugin_dtype_o, .plugin_swap_o, .plugin_keep_o, .plugin_last_o,
    .result_valid_i, .result_ready_o, .result_data_i, .result_keep_i, .result_last_i,
    .transmit_valid_o, .transmit_ready_i, .transmit_o,
    .send_valid_o, .send_ready_i, .send_data_o, .send_keep_o, .send_last_o, .send_slot_o,
    .end_valid_o(end_valid), .end_o(job_end), .send_end_valid_o(send_end_valid), .send_end_ready_i(send_end_ready),
    .send_end_o(send_end), .starves_o(lanes_starve)
  );

  // ------------------------------------------------------------------------------------------- completion

  unisono_core_completion u_completion (
    .clk_i, .rst_ni, .begins_i(job_valid && lane_ready[job_lane]), .begins_slot_i(job.id.slot),
    .end_valid_i(end_valid), .end_i(job_end), .send_end_valid_i(send_end_valid), .send_end_ready_o(send_end_ready),
    .send_end_i(send_end), .late_valid_i(dispatcher_complete), .late_i(looked),
    .remote_valid_i(remote_valid), .remote_ready_o(remote_ready), .remote_i(remote_done),
    .complete_valid_o(complete_valid), .complete_o(complete),
    .wake_valid_o(wake_valid), .wake_ready_i(wake_ready), .wake_id_o(wake_id),
    .slot_i(clear_slot_i), .idle_o(lanes_idle)
  );
  assign remote_complete = remote_valid && remote_ready;

  // Credits that are owed wait while the table of credits is set up.
  assign owed_communicator_o = owed_out.communicator;
  assign owed_peer_o = owed_out.peer;
  unisono_fifo #(.Width($bits(member_t)), .Depth(Buffers)) u_owed (
    .clk_i, .rst_ni, .in_valid_i(owed_in_valid), .in_ready_o(), .in_data_i(owed_in),
    .out_valid_o(owed_valid_o), .out_ready_i(owed_ready_i), .out_data_o(owed_out), .count_o()
  );

  // Of memory and Tx, of moves, of messages.
  assign causes[0] = '{end_valid && job_end.error, job_end.id.slot, ErrorCodeInternal};
  assign causes[5] = '{send_error_valid_i, send_error_slot_i, ErrorCodeInternal};
  assign causes[7] = '{send_end_valid && send_end_ready && send_end.error && !send_end.serves, send_end.id.slot,
                       ErrorCodeInternal};
  unisono_core_failures u_failures (
    .clk_i, .rst_ni, .causes_i(causes), .clearing_i(clearing), .fail_valid_o, .fail_slot_o, .fail_code_o
  );

  // ------------------------------------------------------------------------------------ counters and trace

  unisono_core_observe u_observe (
    .clk_i, .rst_ni, .cycle_i, .clear_window_i(clear.window),
    .clear_dispatcher_i(clear.dispatcher && dispatcher_cleared), .clear_slot_i, .contexts_i, .communicators_i,
    .entered_i(push_valid && push_ready), .entered_id_i(push_id), .entering_i(entering),
    .issue_valid_i(issue_valid), .issue_ready_i(issue_ready), .issue_id_i(issue.id),
    .look_valid_i(look_valid), .look_id_i(follow_id), .park_valid_i(park_valid), .park_cause_i(park_cause),
    .event_id_i(looked.id), .job_valid_i(job_valid), .job_lane_i(job_lane), .job_ready_i(lane_ready),
    .ended_i(end_valid), .complete_i(complete_valid), .complete_id_i(complete.id),
    .retired_i(retired_valid), .retired_id_i(retired_id),
    .buffered_i(write_command_valid_o[1] && write_command_ready_i[1]), .bypassed_i(offer_answer && offer_accepted),
    .starves_i(lanes_starve), .read_valid_i, .read_ready_i(read_ready_o), .write_valid_i(write_valid_o),
    .write_ready_i, .transmit_valid_i(transmit_valid_o), .transmit_ready_i, .transmit_i(transmit_o),
    .events_o, .record_valid_o, .record_o
  );

  logic unused;
  assign unused = ^stream_in_last_i;

endmodule
