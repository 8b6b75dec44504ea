// Receive-buffer manager: brings what comes from peers to the arrivals that wait for it.
//
// A segment belongs to a pair (active call, peer). It is found without a search: a collective's by comparing its
// sequence with those of the active calls, a write's by its token. If its arrival has issued and nothing stands before
// it, it is offered to the dispatcher and goes straight to the lane (bypass); otherwise it is written to a receive
// buffer and takes its place in the pair's list. Long messages are granted in steps of GrantSegments, each with a
// buffer in reserve, so that what comes never has to wait (rule 2 of docs/rtl/engine.md).
//
// Of a pair two arrivals may have issued: the one that takes what comes, and the next, which is told of its turn when
// the former has all, and may have been granted before.
//
// What belongs to a call that is not active yet is *early*: it waits in a hash table of lists, keyed by communicator,
// source and sequence. The first operation on a pair of a new call takes over what came early for it. What belongs to a
// collective that is over is dropped: its sequence is before that of the communicator's newest call.
//
// A point-to-point message belongs to the oldest receive of its communicator, source and tag that has none yet. If
// there is no receive it is early, keyed by its tag; the oldest receive takes over the oldest message, and only that.
//
// A long point-to-point message begins on credit: its first segment makes the arrival that has it one that is granted,
// and what continues it on credit goes where that went. A sender without credit asks: a request takes its place among
// the messages of its pair and makes the arrival that meets it one that is granted.
//
// When a communicator begins anew, what was early in its former life is thrown away.
//
// A call that failed is cleared: what its pairs hold is given back, with the credit, and what was early for it too.
//
// Latency: from header to offer 3 cycles; from header to buffer 3 cycles and the write; a grant is sent 5 cycles after
// what makes it due. After a reset, and once in 2^EpochWidth calls of a slot, records are gone through, which takes
// 2 cycles for each. Operations on pairs take 2 cycles each (a grant 3), in the order: written segments, the
// dispatcher's, grants, new segments.
// Throughput: one operation at a time; the payload passes at 1 word per cycle.
//
// This module joins the parts; what is done in which cycle is said by unisono_rbm_operations.

module unisono_rbm
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter logic [63:0] BufferBase = 64'h0,
  parameter int unsigned BufferBytes = 8192,
  parameter int unsigned GrantSegments = 16,       // granted at a time
  parameter int unsigned GrantBuffers = 512,       // that grants may have in reserve, of all Buffers
  parameter int unsigned EpochWidth = 12           // of the count of a slot's calls; see u_records
) (
  input  logic clk_i,
  input  logic rst_ni,

  // What is known of a slot's call is forgotten; if it failed, what its pairs hold is given back first. Held until
  // done, which ends with it. The dispatcher asks for nothing of this call any more.
  input  logic  clear_valid_i,
  input  slot_t clear_slot_i,
  input  logic  clear_failed_i,
  output logic  clear_done_o,
  output logic [BufferWidth:0] free_buffers_o,

  // A communicator begins anew: none of its calls are over.
  input  logic          begins_valid_i,
  input  communicator_t begins_communicator_i,

  // A point-to-point call's move has come; all of a move's message has been sent.
  input  logic     partner_valid_i,
  input  partner_t partner_i,
  input  logic     sent_valid_i,
  input  slot_t    sent_slot_i,

  // The active calls.
  input  logic [Calls-1:0]    active_i,
  input  call_context_t       contexts_i [Calls],
  output slot_t               communicator_slot_o,
  input  communicator_entry_t communicator_i,      // of that slot, in the same cycle

  // From Rx: a header, then its payload if it has any.
  input  logic                   received_valid_i,
  output logic                   received_ready_o,
  input  received_t              received_i,
  input  logic                   payload_valid_i,
  output logic                   payload_ready_o,
  input  logic [DataBytes*8-1:0] payload_data_i,
  input  logic [DataBytes-1:0]   payload_keep_i,
  input  logic                   payload_last_i,

  // To the writer of receive buffers; it says when a segment is visible, in order.
  output logic           write_command_valid_o,
  input  logic           write_command_ready_i,
  output address_t       write_command_address_o,
  output segment_bytes_t write_command_bytes_o,
  output logic                   write_valid_o,
  input  logic                   write_ready_i,
  output logic [DataBytes*8-1:0] write_data_o,
  output logic [DataBytes-1:0]   write_keep_o,
  output logic                   write_last_o,
  input  logic           written_i,
  input  logic           written_error_i,

  // Straight to the lane.
  output logic                   bypass_valid_o,
  input  logic                   bypass_ready_i,
  output logic [DataBytes*8-1:0] bypass_data_o,
  output logic [DataBytes-1:0]   bypass_keep_o,
  output logic                   bypass_last_o,
  output logic           offer_valid_o,
  output move_id_t       offer_id_o,
  output segment_bytes_t offer_bytes_o,
  output message_bytes_t offer_total_o,
  input  logic           offer_answer_i,
  input  logic           offer_accepted_i,

  // The dispatcher.
  input  logic     post_valid_i,
  output logic     post_ready_o,
  input  post_t    post_i,
  input  logic     head_valid_i,
  input  pair_t    head_pair_i,
  input  entry_t   head_entry_i,           // who asks: the segment may be another arrival's
  output logic     head_answer_o,
  output segment_t head_o,
  input  logic     take_valid_i,
  input  pair_t    take_pair_i,
  output logic     take_ready_o,
  output logic     kick_valid_o,
  input  logic     kick_ready_i,
  output move_id_t kick_id_o,
  // An arrival takes what comes from its peer from now on, so the next one may issue. Never refused; not of those of
  // several peers.
  output logic        turn_valid_o,
  output move_id_t    turn_id_o,
  output generation_t turn_generation_o,
  // A pair's grants, if any have come, are handed over before the answer.
  input  logic           adopt_valid_i,
  input  pair_t          adopt_pair_i,
  output logic           adopt_ready_o,
  output logic           grant_valid_o,
  input  logic           grant_ready_i,
  output pair_t          grant_pair_o,
  output message_bytes_t grant_limit_o,
  output logic [15:0]    grant_slot_o,
  output logic [15:0]    grant_generation_o,

  // A buffer that a lane has read.
  input  logic    release_valid_i,
  input  buffer_t release_buffer_i,
  // An eager message of this peer has been taken: its credit is owed.
  output logic          owed_valid_o,
  output communicator_t owed_communicator_o,
  output rank_t         owed_peer_o,

  // Grants to peers.
  output logic      transmit_valid_o,
  input  logic      transmit_ready_i,
  output transmit_t transmit_o,
  output communicator_t peer_communicator_o,
  output rank_t         peer_rank_o,
  // verilator lint_off UNUSEDSIGNAL
  input  peer_entry_t   peer_i,                    // one cycle later; that it is valid is known
  // verilator lint_on UNUSEDSIGNAL

  // What a peer sent does not fit the program here.
  output logic        fail_valid_o,
  output slot_t       fail_slot_o,
  output error_code_e fail_code_o
);

  // What several parts below share.
  logic grant_early;                            // a grant is an early one, not the one at the head of Rx
  state_e state;                                // what is done in this cycle, and of which pair
  pair_t pair, next_pair, read_pair;
  logic wipe;                                   // after a reset, all records are made void
  logic forgets;                                // a slot's pairs, all at once
  slot_t match;
  pair_t match_pair;
  logic [Calls-1:0] active, sends;              // active, and not being cleared; a send of a point-to-point call

  // ---------------------------------------------------------------------------------------------- memories

  logic record_read, record_write;
  record_t record_new, seen;                    // seen stays until the next record is read

  // A pair that no message or arrival of its call has touched yet is not known: of its record only the generation
  // counts. Nothing but its first look, what comes early, grants and clears can meet such a pair.
  logic known, record_void, epoch_over;
  unisono_rbm_records #(.EpochWidth(EpochWidth)) u_pairs (
    .clk_i, .next_pair_i(next_pair), .read_i(record_read), .read_pair_i(read_pair),
    .record_o(seen), .known_o(known),
    .write_i(record_write), .write_void_i(record_void), .write_pair_i(pair), .write_record_i(record_new),
    .forget_i(forgets), .forget_slot_i(clear_slot_i), .last_o(epoch_over)
  );

  // The call of the pair under way.
  call_context_t own;
  assign own = contexts_i[pair.slot];
  // And in a register, from the second cycle on, with what it is known by in lists.
  call_context_t own_q;
  logic [31:0] early_key_q;
  always_ff @(posedge clk_i) begin
    own_q <= own;
    early_key_q <= own.point_to_point ? own.tag : own.sequence_;
  end

  // --------------------------------------------------------------------------------------------- buffers

  logic free_valid, free_take, owed_bypass;     // a segment takes a buffer, or goes past them
  buffer_t free_buffer;
  owner_t owner;                                // of what comes
  logic signal, signal_mute;                    // a buffer is given back: its segment has no content, or is not wanted
  buffer_t signal_buffer;
  logic signal_full;

  unisono_rbm_pool u_pool (
    .clk_i, .rst_ni,
    .free_valid_o(free_valid), .free_take_i(free_take), .free_buffer_o(free_buffer), .free_count_o(free_buffers_o),
    .owner_i(owner), .release_valid_i, .release_buffer_i,
    .signal_valid_i(signal), .signal_mute_i(signal_mute), .signal_buffer_i(signal_buffer),
    .signal_full_o(signal_full), .bypass_valid_i(owed_bypass),
    .owed_valid_o, .owed_communicator_o, .owed_peer_o
  );

  early_op_e early_op;
  bucket_t early_bucket;
  logic early_pending, any_early, early_has, renews, sweeps, early_link_write, early_hold, early_last;
  logic early_give_back, early_mute, early_fail, early_bad;
  logic store_early, appends, accepted, early_renew;
  buffer_t early_look, early_link_buffer, early_link_next, early_at;
  adopted_t adopted;
  logic store_ready, shown_valid, shown_take, shown_bad;
  pending_t store, shown;                       // a segment that is stored; one that is in memory
  info_t info, store_info;
  logic bad, link_write;                        // of early segments, bad ones fail the call that takes them over
  buffer_t info_address, link_address, link, link_write_address, link_new;

  // The lists of pairs, and the early ones.
  assign info_address = state inside {AdoptRead, AdoptCheck} ? early_look : seen.head;
  assign link_address = info_address;
  assign link_write = early_link_write || appends;
  assign link_write_address = early_link_write ? early_link_buffer : seen.tail;
  assign link_new = early_link_write ? early_link_next : shown.buffer;
  unisono_rbm_segments u_segments (
    .clk_i, .rst_ni, .store_valid_i(free_take), .store_ready_o(store_ready), .store_i(store), .info_i(store_info),
    .written_i, .written_error_i,
    .shown_valid_o(shown_valid), .shown_take_i(shown_take), .shown_o(shown), .shown_bad_o(shown_bad),
    .info_buffer_i(info_address), .info_o(info), .bad_o(bad),
    .link_buffer_i(link_address), .link_o(link), .link_write_i(link_write),
    .link_write_buffer_i(link_write_address), .link_write_next_i(link_new)
  );

  // ----------------------------------------------------------------------------------------- early lists

  // What is on its way to a list must be there before the list is gone through; a list that has just become one counts
  // a cycle later.
  // A pair that has not been touched by its call may have something early.
  logic untouched, must_wait;
  // A message that is sent point to point has nothing early: it is known to the peer only when it is announced.
  assign untouched = !known && !sends[pair.slot];
  assign must_wait = untouched && early_pending;

  // -------------------------------------------------------------------------------------- matching

  // verilator lint_off UNUSEDSIGNAL
  header_t header;                              // much of it counts elsewhere
  // verilator lint_on UNUSEDSIGNAL
  assign header = received_i.header;
  kind_t kind;                                  // of what is at the head of Rx
  message_t message;
  segment_bytes_t segment_bytes;
  message_bytes_t header_end;
  logic empty, fresh_pair, request_bad;
  logic adopts, opened_early;
  verdict_e verdict;
  error_code_e refusal;
  record_t noted;

  // The match is kept with the pair whose record is read, for calls may begin meanwhile.
  logic matched, match_any, is_over;
  logic [Calls-1:0] same_signature, same_communicator, receives_first;
  logic binds, adopt_binds;                     // the pair's receive has its message; an early one, told a cycle later
  slot_t elder_now;                             // of the receives with the key of the pair under way, the oldest
  logic [31:0] message_sequence;                // of the message that the receive has

  unisono_rbm_matcher u_matcher (
    .clk_i, .rst_ni, .active_i, .contexts_i, .partner_valid_i, .partner_i, .clear_valid_i, .clear_slot_i,
    .forgets_i(forgets), .sent_valid_i, .sent_slot_i, .active_o(active), .sends_o(sends), .first_o(receives_first),
    .message_i(message), .match_valid_o(match_any), .match_o(match),
    .same_signature_o(same_signature), .same_communicator_o(same_communicator),
    .slot_i(pair.slot), .bind_i(binds), .bind_early_i(adopt_binds), .bind_sequence_i(info.ends[31:0]),
    .bind_opens_i(info.opens),
    .elder_o(elder_now), .sequence_o(message_sequence)
  );
  unisono_rbm_sequences u_sequences (
    .clk_i, .rst_ni, .active_i, .contexts_i, .begins_valid_i, .begins_communicator_i,
    .communicator_i(received_i.communicator), .sequence_i(header.sequence_), .before_next_o(is_over)
  );

  unisono_rbm_head u_head (
    .clk_i, .received_i, .message_o(message), .kind_o(kind), .bytes_o(segment_bytes), .end_o(header_end),
    .empty_o(empty), .info_o(store_info), .owner_o(owner),
    .peer_i(pair.peer), .seen_i(seen), .known_i(known), .active_i(active[pair.slot]),
    .same_communicator_i(same_communicator[pair.slot]), .same_signature_i(same_signature[pair.slot]),
    .matched_i(matched), .over_i(is_over), .early_i(opened_early), .must_wait_i(must_wait), .untouched_i(untouched),
    .verdict_o(verdict), .fresh_o(fresh_pair), .request_bad_o(request_bad), .code_o(refusal), .noted_o(noted)
  );

  // What continues a message that no receive has is early if the message has begun so. Asked about are the source of
  // the head of Rx, and that of the pair which takes over what is early.
  assign adopts = state inside {Adopt, AdoptRead, AdoptCheck};
  unisono_rbm_openings u_openings (
    .clk_i, .communicator_i(adopts ? own_q.communicator : received_i.communicator),
    .source_i(adopts ? pair.peer : received_i.source),
    .sequence_i(state == AdoptCheck ? info.ends[31:0] : header.sequence_),
    .early_o(opened_early),
    .begins_i(state == Segment && store_info.opens &&
              verdict inside {VerdictDrop, VerdictEarly, VerdictRefuse, VerdictTake}),
    .begins_early_i(verdict == VerdictEarly), .adopted_i(adopt_binds && info.opens)
  );

  // Calls that exchange something with others. A clear of one that does not has no sequence to look early lists through
  // for. Inactive calls are cleared too, so this is kept until the call is forgotten.
  logic [Calls-1:0] exchanges_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) exchanges_q <= '0;
    else exchanges_q <= (exchanges_q | active_i) & ~(forgets ? Calls'(1) << clear_slot_i : '0);
  end

  pair_t token_pair;
  assign token_pair = pair_t'(header.token_slot);

  // --------------------------------------------------------------------------------------------- payload

  way_e way;                                    // of the payload that follows the header at the head
  logic payload_idle;

  unisono_rbm_router #(.DataBytes(DataBytes)) u_router (
    .clk_i, .rst_ni, .way_i(way), .idle_o(payload_idle),
    .payload_valid_i, .payload_ready_o, .payload_data_i, .payload_keep_i, .payload_last_i,
    .write_valid_o, .write_ready_i, .write_data_o, .write_keep_o, .write_last_o,
    .bypass_valid_o, .bypass_ready_i, .bypass_data_o, .bypass_keep_o, .bypass_last_o
  );

  // -------------------------------------------------------------------------------------------- operations

  assign communicator_slot_o = pair.slot;
  assign peer_communicator_o = own_q.communicator;
  assign peer_rank_o = pair.peer;

  assign offer_bytes_o = segment_bytes;
  assign offer_total_o = header.message_bytes;

  unisono_rbm_early u_lists (
    .clk_i, .rst_ni, .op_i(early_op), .bucket_i(early_bucket), .append_i(shown.buffer),
    .store_i(free_take && store_early), .pending_o(early_pending), .any_o(any_early), .has_o(early_has),
    .peer_i(pair.peer), .context_i(own_q), .key_i(early_key_q), .active_i(active[pair.slot]),
    .wipe_i(wipe), .begins_valid_i, .begins_communicator_i, .renews_o(renews), .renew_i(early_renew),
    .sweeps_o(sweeps),
    .look_o(early_look), .info_i(info), .bad_i(bad), .link_i(link), .link_write_o(early_link_write),
    .link_buffer_o(early_link_buffer), .link_next_o(early_link_next),
    .hold_o(early_hold), .last_o(early_last), .at_o(early_at), .give_back_o(early_give_back), .mute_o(early_mute),
    .give_back_full_i(signal_full), .grant_valid_o(grant_early), .grant_ready_i, .bind_o(adopt_binds),
    .fail_o(early_fail), .fail_bad_o(early_bad), .adopted_o(adopted)
  );

  logic grants_push, grants_ask;           // the pair is granted more, surely or if what is written says so
  logic grants_valid, grants_take, grants_due, grants_return, grants_return_next;
  pair_t grants_head;
  record_t granted;                        // seen, with what is granted
  unisono_rbm_grants #(.GrantSegments(GrantSegments), .GrantBuffers(GrantBuffers)) u_grants (
    .clk_i, .rst_ni, .pair_i(pair), .known_i(known), .seen_i(seen), .context_i(own_q), .communicator_i,
    .sequence_i(message_sequence), .session_i(peer_i.session),
    .push_i(grants_push), .ask_i(grants_ask), .record_i(record_new),
    .head_valid_o(grants_valid), .head_take_i(grants_take), .head_o(grants_head), .wipe_i(wipe),
    .due_o(grants_due), .step_i(state == GrantStep), .stepped_o(granted),
    .return_now_i(grants_return), .return_next_i(grants_return_next), .transmit_o
  );

  logic stores;                            // the segment at the head of Rx gets its buffer
  logic post_refused;
  assign stores = free_valid && store_ready && (empty || write_command_ready_i);
  unisono_rbm_update u_update (
    .state_i(state), .seen_i(seen), .shown_i(shown.buffer), .adopted_i(adopted), .info_i(info), .link_i(link),
    .post_i, .post_refused_o(post_refused), .granted_i(granted), .noted_i(noted), .request_i(kind.is_request),
    .fresh_i(fresh_pair), .last_i(header.last), .bytes_i(segment_bytes), .end_i(header_end), .accepted_i(accepted),
    .stores_i(stores), .record_o(record_new)
  );

  assign match_pair = '{slot: match, peer: received_i.source};

  unisono_rbm_operations u_operations (
    .clk_i, .rst_ni, .clear_valid_i, .clear_failed_i, .clear_slot_i, .clear_done_o,
    .received_valid_i, .received_ready_o, .offer_valid_o, .offer_id_o, .offer_answer_i, .offer_accepted_i,
    .post_valid_i, .post_ready_o, .post_i, .head_valid_i, .head_pair_i, .head_entry_i, .head_answer_o, .head_o,
    .take_valid_i, .take_pair_i, .take_ready_o, .kick_valid_o, .kick_ready_i, .kick_id_o,
    .turn_valid_o, .turn_id_o, .turn_generation_o, .adopt_valid_i, .adopt_pair_i, .adopt_ready_o,
    .grant_valid_o, .grant_ready_i, .transmit_valid_o, .transmit_ready_i, .write_command_valid_o,
    .fail_valid_o, .fail_slot_o, .fail_code_o,
    .state_o(state), .pair_o(pair), .next_pair_o(next_pair), .read_pair_o(read_pair),
    .record_read_o(record_read), .record_write_o(record_write), .record_void_o(record_void),
    .seen_i(seen), .record_i(record_new), .known_i(known), .post_refused_i(post_refused), .forgets_o(forgets),
    .epoch_over_i(epoch_over), .wipe_o(wipe), .point_to_point_i(own.point_to_point),
    .point_to_point_q_i(own_q.point_to_point), .exchanges_i(exchanges_q),
    .match_any_i(match_any), .match_pair_i(match_pair), .token_pair_i(token_pair), .matched_o(matched),
    .receives_first_i(receives_first), .elder_now_i(elder_now), .binds_o(binds), .kind_i(kind),
    .head_info_i(store_info), .info_i(info), .empty_i(empty), .fresh_pair_i(fresh_pair),
    .request_bad_i(request_bad), .verdict_i(verdict), .refusal_i(refusal), .way_o(way),
    .payload_idle_i(payload_idle), .accepted_o(accepted),
    .free_valid_i(free_valid), .stores_i(stores), .free_buffer_i(free_buffer), .free_take_o(free_take),
    .owed_bypass_o(owed_bypass), .signal_o(signal), .signal_mute_o(signal_mute), .signal_buffer_o(signal_buffer),
    .signal_full_i(signal_full), .store_ready_i(store_ready), .shown_valid_i(shown_valid), .shown_bad_i(shown_bad),
    .store_o(store), .shown_i(shown), .shown_take_o(shown_take), .appends_o(appends),
    .early_op_o(early_op), .early_renew_o(early_renew), .early_bucket_o(early_bucket), .store_early_o(store_early),
    .must_wait_i(must_wait), .untouched_i(untouched), .early_pending_i(early_pending), .any_early_i(any_early),
    .early_has_i(early_has), .renews_i(renews), .sweeps_i(sweeps), .early_hold_i(early_hold),
    .early_last_i(early_last), .early_give_back_i(early_give_back), .early_mute_i(early_mute),
    .grant_early_i(grant_early), .early_fail_i(early_fail), .early_bad_i(early_bad), .early_at_i(early_at),
    .grants_valid_i(grants_valid), .grants_due_i(grants_due), .grants_head_i(grants_head),
    .grants_push_o(grants_push), .grants_ask_o(grants_ask), .grants_take_o(grants_take),
    .grants_return_o(grants_return), .grants_return_next_o(grants_return_next)
  );

  assign write_command_address_o = BufferBase + address_t'(free_buffer) * address_t'(BufferBytes);
  assign write_command_bytes_o = segment_bytes;
  assign grant_pair_o = pair;
  assign grant_limit_o = grant_early ? info.total : header.message_bytes;
  assign grant_slot_o = grant_early ? info.signature[15:0] : header.token_slot;
  assign grant_generation_o = grant_early ? info.signature[31:16] : header.token_generation;

  `ifndef SYNTHESIS
  // Epochs must say what a bit for each pair would.
  logic [Pairs-1:0] known_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      known_q <= '0;
    end else begin
      if (record_write && !record_void) known_q[pair] <= 1'b1;
      if (forgets) known_q[{clear_slot_i, rank_t'(0)} +: Ranks] <= '0;
    end
  end
  logic looks_q;                           // the record has just been read
  always_ff @(posedge clk_i) looks_q <= rst_ni && record_read && state != WipeRead;
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!looks_q || known == known_q[pair]) else $error("a record's epoch is not its call's");
    end
  end
  `endif

endmodule
