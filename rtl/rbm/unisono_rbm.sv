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
// A point-to-point message belongs to the oldest receive of its communicator, source and tag that has none yet. If there
// is no receive it is early, keyed by its tag; the oldest receive takes over the oldest message, and only that one.
//
// A sender without credit, and one of a long point-to-point message, asks: a request takes its place among the messages
// of its pair and makes the arrival that meets it one that is granted.
//
// When a communicator begins anew, what was early in its former life is thrown away.
//
// A call that failed is cleared: what its pairs hold is given back, with the credit, and what was early for it too.
//
// Latency: from header to offer 3 cycles; from header to buffer 3 cycles and the write; a grant is sent 5 cycles after
// what makes it due. After a reset, and once in 2^EpochWidth calls of a slot, records are gone through, which takes
// 2 cycles for each. Operations on pairs take 2 cycles each (a grant 3), in the order: written segments, the dispatcher's, grants, new segments.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

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

  // A point-to-point call's move has come.
  input  logic     partner_valid_i,
  input  partner_t partner_i,

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
  input  peer_entry_t   peer_i,                    // one cycle later

  // What a peer sent does not fit the program here.
  output logic        fail_valid_o,
  output slot_t       fail_slot_o,
  output error_code_e fail_code_o
);

  // What several parts below share.
  buffer_t info_taken_d, info_taken_q;
  move_id_t offer_id_d, offer_id_q;
  pair_t offer_pair_d, offer_pair_q;
  logic grant_early;                            // a grant is an early one, not the one at the head of Rx
  logic mute_d, mute_q;                         // what is given back is of a communicator that is no more
  logic take_ready_q, head_answer_q, post_ready_q, adopt_ready_q;
  logic forgets;                                // a slot's pairs, all at once
  logic reads_match;                            // the record of the pair that the head of Rx matches, known last
  slot_t match;
  pair_t match_pair;
  logic [Calls-1:0] active, sends;              // active, and not being cleared; a send of a point-to-point call

  // ---------------------------------------------------------------------------------------------- memories

  logic record_read, record_write;
  pair_t record_address, pair_d, pair_q;
  record_t record_new, seen;                    // seen stays until the next record is read

  // A pair that no message or arrival of its call has touched yet is not known: of its record only the generation counts.
  // Nothing but its first look, what comes early, grants and clears can meet such a pair.
  logic known, record_void, epoch_over;
  pair_t next_pair;
  assign next_pair = reads_match ? match_pair : pair_d;
  unisono_rbm_records #(.EpochWidth(EpochWidth)) u_pairs (
    .clk_i, .next_pair_i(next_pair), .read_i(record_read), .read_pair_i(reads_match ? match_pair : record_address),
    .record_o(seen), .known_o(known),
    .write_i(record_write), .write_void_i(record_void), .write_pair_i(pair_q), .write_record_i(record_new),
    .forget_i(forgets), .forget_slot_i(clear_slot_i), .last_o(epoch_over)
  );

  // Before an epoch is used again, and after a reset, no record has it any more: they are gone through, of one slot or
  // of all.
  logic wipe_all_d, wipe_all_q, wipe_ends;
  assign wipe_ends = pair_q.peer == '1 && (!wipe_all_q || pair_q.slot == '1);

  // --------------------------------------------------------------------------------------------- buffers

  logic free_valid, free_take, owed_bypass;     // a segment takes a buffer, or goes past them
  buffer_t free_buffer;
  owner_t owner;                                // of what comes
  logic signal_ends_d, signal_ends_q;           // a buffer is given back: its segment has no content, or is not wanted
  logic signal_full;

  unisono_rbm_pool u_pool (
    .clk_i, .rst_ni,
    .free_valid_o(free_valid), .free_take_i(free_take), .free_buffer_o(free_buffer), .free_count_o(free_buffers_o),
    .owner_i(owner), .release_valid_i, .release_buffer_i,
    .signal_valid_i(signal_ends_q), .signal_mute_i(mute_q), .signal_buffer_i(info_taken_q),
    .signal_full_o(signal_full), .bypass_valid_i(owed_bypass),
    .owed_valid_o, .owed_communicator_o, .owed_peer_o
  );

  logic store_ready, shown_valid, shown_take, shown_bad;
  pending_t store, shown;                       // a segment that is stored; one that is in memory
  info_t info, store_info;
  logic bad, link_write;                        // of early segments, bad ones fail the call that takes them over
  buffer_t info_address, link_address, link, link_write_address, link_new;

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
  early_op_e early_op;
  bucket_t early_bucket;
  logic early_pending, any_early, early_has, renews, sweeps, early_link_write, early_hold, early_last;
  logic early_give_back, early_mute, early_fail, early_bad;
  buffer_t early_look, early_link_buffer, early_link_next, early_at;
  adopted_t adopted;
  logic store_early_d, store_early_q;

  // A pair that has not been touched by its call may have something early.
  logic untouched, must_wait;
  // A message that is sent point to point has nothing early: it is known to the peer only when it is announced.
  assign untouched = !known && !sends[pair_q.slot];
  assign must_wait = untouched && early_pending;

  // -------------------------------------------------------------------------------------- matching

  header_t header;
  assign header = received_i.header;
  kind_t kind;                                  // of what is at the head of Rx
  message_t message;
  segment_bytes_t segment_bytes;
  message_bytes_t header_end;
  logic empty, fresh_pair, request_bad;
  verdict_e verdict;
  error_code_e refusal;
  record_t noted;

  // The match is kept with the pair whose record is read, for calls may begin meanwhile.
  logic matched_d, matched_q, match_any, is_over;
  logic [Calls-1:0] same_signature, same_communicator, receives_first;
  logic binds, adopt_binds;                     // the pair's receive has its message; an early one, told a cycle later
  slot_t elder_now;                             // of the receives with the key of the pair under way, the oldest
  logic [31:0] message_sequence;                // of the message that the receive has

  unisono_rbm_matcher u_matcher (
    .clk_i, .rst_ni, .active_i, .contexts_i, .partner_valid_i, .partner_i, .clear_valid_i, .clear_slot_i,
    .forgets_i(forgets), .active_o(active), .sends_o(sends), .first_o(receives_first),
    .message_i(message), .match_valid_o(match_any), .match_o(match),
    .same_signature_o(same_signature), .same_communicator_o(same_communicator),
    .slot_i(pair_q.slot), .bind_i(binds), .bind_early_i(adopt_binds), .bind_sequence_i(info.ends[31:0]),
    .elder_o(elder_now), .sequence_o(message_sequence)
  );
  unisono_rbm_sequences u_sequences (
    .clk_i, .rst_ni, .active_i, .contexts_i, .begins_valid_i, .begins_communicator_i,
    .communicator_i(received_i.communicator), .sequence_i(header.sequence_), .before_next_o(is_over)
  );

  unisono_rbm_head u_head (
    .clk_i, .received_i, .message_o(message), .kind_o(kind), .bytes_o(segment_bytes), .end_o(header_end),
    .empty_o(empty), .info_o(store_info), .owner_o(owner),
    .peer_i(pair_q.peer), .seen_i(seen), .known_i(known), .active_i(active[pair_q.slot]),
    .same_communicator_i(same_communicator[pair_q.slot]), .same_signature_i(same_signature[pair_q.slot]),
    .matched_i(matched_q), .over_i(is_over), .must_wait_i(must_wait), .untouched_i(untouched),
    .verdict_o(verdict), .fresh_o(fresh_pair), .request_bad_o(request_bad), .code_o(refusal), .noted_o(noted)
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

  state_e state_d, state_q;

  logic offering_d, offering_q;            // Rx's head waits for the dispatcher's answer
  logic answered_d, answered_q, accepted_d, accepted_q;
  move_id_t kick_d, kick_q;
  logic asked_d, asked_q;                  // the dispatcher waits for what was early
  logic elder_known_d, elder_known_q;      // the oldest receive was found to have been asked for what was early
  slot_t elder_d, elder_q;
  rank_t clear_rank_d, clear_rank_q;       // of the pair that is cleared
  logic cleared_d, cleared_q;
  assign clear_done_o = cleared_q;
  logic header_done;                       // the header at the head has been dealt with

  // The call of the pair under way.
  call_context_t own;
  assign own = contexts_i[pair_q.slot];
  // And in a register, from the second cycle on, with what it is known by in lists.
  call_context_t own_q;
  logic [31:0] early_key_q;
  always_ff @(posedge clk_i) begin
    own_q <= own;
    early_key_q <= own.point_to_point ? own.tag : own.sequence_;
  end

  assign communicator_slot_o = pair_q.slot;
  assign peer_communicator_o = own_q.communicator;
  assign peer_rank_o = pair_q.peer;

  assign kick_valid_o = state_q == Kick;
  assign kick_id_o = kick_q;
  assign offer_valid_o = offering_q && !answered_q;
  assign offer_id_o = offer_id_q;
  assign offer_bytes_o = segment_bytes;
  assign offer_total_o = header.message_bytes;

  logic turns;                             // record_new's arrival takes what comes from now on
  assign turn_valid_o = turns && record_new.posted && !record_new.fan_in;
  assign turn_id_o = '{slot: pair_q.slot, entry: record_new.entry};
  assign turn_generation_o = record_new.program_;

  unisono_rbm_early u_lists (
    .clk_i, .rst_ni, .op_i(early_op), .bucket_i(early_bucket), .append_i(shown.buffer),
    .store_i(free_take && store_early_q), .pending_o(early_pending), .any_o(any_early), .has_o(early_has),
    .peer_i(pair_q.peer), .context_i(own_q), .key_i(early_key_q), .active_i(active[pair_q.slot]),
    .wipe_i(wipe_all_q), .begins_valid_i, .begins_communicator_i, .renews_o(renews), .sweeps_o(sweeps),
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
    .clk_i, .rst_ni, .pair_i(pair_q), .known_i(known), .seen_i(seen), .context_i(own_q), .communicator_i,
    .sequence_i(message_sequence), .session_i(peer_i.session),
    .push_i(grants_push), .ask_i(grants_ask), .record_i(record_new),
    .head_valid_o(grants_valid), .head_take_i(grants_take), .head_o(grants_head), .wipe_i(wipe_all_q),
    .due_o(grants_due), .step_i(state_q == GrantStep), .stepped_o(granted),
    .return_now_i(grants_return), .return_next_i(grants_return_next), .transmit_o
  );

  logic stores;                            // the segment at the head of Rx gets its buffer
  logic post_refused;
  assign stores = free_valid && store_ready && (empty || write_command_ready_i);
  unisono_rbm_update u_update (
    .state_i(state_q), .seen_i(seen), .shown_i(shown.buffer), .adopted_i(adopted), .info_i(info), .link_i(link),
    .post_i, .post_refused_o(post_refused), .granted_i(granted), .noted_i(noted), .request_i(kind.is_request),
    .fresh_i(fresh_pair), .last_i(header.last), .bytes_i(segment_bytes), .end_i(header_end), .accepted_i(accepted_q),
    .stores_i(stores), .record_o(record_new)
  );

  assign match_pair = '{slot: match, peer: received_i.source};

  always_comb begin
    state_d = state_q;
    pair_d = pair_q;
    kick_d = kick_q;
    info_taken_d = info_taken_q;
    offering_d = offering_q;
    offer_id_d = offer_id_q;
    offer_pair_d = offer_pair_q;
    answered_d = answered_q || offer_answer_i;
    accepted_d = offer_answer_i ? offer_accepted_i : accepted_q;
    way = WayNone;
    grants_return = 1'b0;
    grants_return_next = 1'b0;
    record_read = 1'b0;
    reads_match = 1'b0;
    record_address = pair_q;
    record_write = 1'b0;
    record_void = 1'b0;
    wipe_all_d = wipe_all_q;
    info_address = seen.head;
    link_address = seen.head;
    link_write = early_link_write;
    link_write_address = early_link_write ? early_link_buffer : seen.tail;
    link_new = early_link_write ? early_link_next : shown.buffer;
    free_take = 1'b0;
    signal_ends_d = 1'b0;
    store = '{pair: pair_q, early: store_early_q,
                   bucket: hash(received_i.communicator, received_i.source,
                                kind.is_pair ? header.tag : header.sequence_),
                   buffer: free_buffer, empty: empty};
    early_op = EarlyNone;
    early_bucket = shown.bucket;
    store_early_d = store_early_q;
    mute_d = 1'b0;
    adopt_ready_o = 1'b0;
    shown_take = 1'b0;
    grants_push = 1'b0;
    grants_ask = 1'b0;
    grants_take = 1'b0;
    post_ready_o = 1'b0;
    head_answer_o = 1'b0;
    head_o = '0;
    take_ready_o = 1'b0;
    grant_valid_o = 1'b0;
    transmit_valid_o = 1'b0;
    write_command_valid_o = 1'b0;
    header_done = 1'b0;
    owed_bypass = 1'b0;
    fail_valid_o = 1'b0;
    fail_slot_o = pair_q.slot;
    fail_code_o = ErrorCodeMismatchedCall;
    matched_d = matched_q;
    binds = 1'b0;
    elder_known_d = elder_known_q;
    elder_d = elder_q;
    asked_d = asked_q;
    forgets = 1'b0;
    clear_rank_d = clear_rank_q;
    cleared_d = cleared_q && clear_valid_i;
    turns = 1'b0;

    unique case (state_q)
      Idle: begin
        if (shown_valid) begin
          record_read = 1'b1;
          record_address = shown.pair;
          pair_d = shown.pair;
          early_op = EarlyLook;
          state_d = shown.early ? AppendEarly : Append;
        end else if (sweeps) begin
          early_op = EarlySweep;
          if (early_has) state_d = AdoptRead;
        end else if (renews && !early_pending && payload_idle && !offering_q) begin
          early_op = EarlyRenew;
        end else if (clear_valid_i && !cleared_q && !clear_failed_i) begin
          forgets = !epoch_over;
          cleared_d = !epoch_over;
          if (epoch_over) begin
            pair_d = '{slot: clear_slot_i, peer: '0};
            state_d = WipeRead;
          end
        end else if (clear_valid_i && !cleared_q && !offering_q && !signal_full) begin
          // What is at the head of Rx has been stored, or has gone to the lane.
          record_read = 1'b1;
          record_address = '{slot: clear_slot_i, peer: clear_rank_q};
          pair_d = record_address;
          state_d = ClearRead;
        end else if (take_valid_i && !take_ready_q) begin
          record_read = 1'b1;
          record_address = take_pair_i;
          pair_d = take_pair_i;
          state_d = TakeRead;
        end else if (head_valid_i && !head_answer_q) begin
          record_read = 1'b1;
          record_address = head_pair_i;
          pair_d = head_pair_i;
          state_d = HeadRead;
        end else if (post_valid_i && !post_ready_q) begin
          record_read = 1'b1;
          record_address = '{slot: post_i.id.slot, peer: post_i.peer};
          pair_d = '{slot: post_i.id.slot, peer: post_i.peer};
          state_d = PostRead;
        end else if (adopt_valid_i && !adopt_ready_q) begin
          record_read = 1'b1;
          record_address = adopt_pair_i;
          pair_d = adopt_pair_i;
          asked_d = 1'b1;
          state_d = AdoptAsk;
        end else if (answered_q) begin
          record_read = 1'b1;
          record_address = offer_pair_q;
          pair_d = offer_pair_q;
          state_d = Offered;
        end else if (grants_valid) begin
          grants_take = 1'b1;
          record_read = 1'b1;
          record_address = grants_head;
          pair_d = grants_head;
          state_d = Grant;
        end else if (received_valid_i && !offering_q && payload_idle && !renews) begin
          record_read = 1'b1;
          reads_match = !kind.is_write;
          record_address = token_pair;
          matched_d = match_any;
          pair_d = token_pair;
          state_d = Segment;
        end
      end

      Append: begin
        shown_take = 1'b1;
        link_write = seen.listed;
        record_write = 1'b1;
        kick_d = '{slot: pair_q.slot, entry: seen.entry};
        state_d = seen.posted && !seen.listed ? Kick : Idle;
        if (shown_bad) begin
          fail_valid_o = 1'b1;
          fail_code_o = ErrorCodeInternal;
        end
      end

      AppendEarly: begin
        shown_take = 1'b1;
        early_op = EarlyAppend;
        state_d = Idle;
      end

      AdoptAsk: begin
        if (must_wait) begin
          state_d = Idle;
        end else if (untouched) begin
          state_d = Adopt;
        end else begin
          adopt_ready_o = asked_q;
          if (!asked_q) begin
            elder_known_d = 1'b1;
            elder_d = pair_q.slot;
          end
          state_d = Idle;
        end
      end
      Adopt: begin
        early_op = EarlyBegin;
        state_d = any_early && early_has ? AdoptRead : AdoptEnd;
      end
      AdoptRead: begin
        early_op = EarlyRead;
        info_address = early_look;
        link_address = early_look;
        state_d = AdoptCheck;
      end
      AdoptCheck: begin
        early_op = EarlyCheck;
        info_address = early_look;
        link_address = early_look;
        state_d = early_hold ? AdoptCheck : early_last ? AdoptEnd : AdoptRead;
        grant_valid_o = grant_early;
        signal_ends_d = early_give_back;
        mute_d = early_mute;
        if (early_give_back) info_taken_d = early_at;
        fail_valid_o = early_fail;
        if (early_bad) fail_code_o = ErrorCodeInternal;
      end
      AdoptEnd: begin
        early_op = EarlyEnd;
        record_write = !sweeps;
        state_d = Idle;
      end

      // info and link of the head are read now, and used in the next cycle.
      TakeRead: state_d = Take;
      Take: begin
        take_ready_o = 1'b1;
        info_taken_d = seen.head;
        turns = info.last;
        record_write = 1'b1;
        grants_return = info.last && seen.rendezvous && seen.ample;
        grants_ask = 1'b1;
        signal_ends_d = info.bytes == '0;
        kick_d = '{slot: pair_q.slot, entry: record_new.entry};
        state_d = info.last && record_new.posted && record_new.listed ? Kick : Idle;
      end

      HeadRead: state_d = HeadShow;
      HeadShow: begin
        head_answer_o = 1'b1;
        head_o = '{valid: seen.listed && seen.posted && seen.entry == head_entry_i,
                   buffer: seen.head, bytes: info.bytes, last: info.last, total: info.total};
        // What came before its arrival had issued is compared with it here.
        if (head_o.valid && !own_q.point_to_point &&
            (info.tag != seen.tag || info.total != seen.total)) begin
          fail_valid_o = 1'b1;
          head_o.valid = 1'b0;
        end
        state_d = Idle;
      end

      PostRead: begin
        state_d = must_wait ? Idle : untouched ? Adopt : Post;
        if (untouched && !must_wait && own.point_to_point && !receives_first[pair_q.slot]) state_d = PostElder;
      end
      PostElder: begin
        state_d = Adopt;
        if (elder_now != pair_q.slot && !(elder_known_q && elder_q == elder_now)) begin
          // The oldest message is for the oldest receive, unless that has been here; this one comes again.
          record_read = 1'b1;
          record_address = '{slot: elder_now, peer: pair_q.peer};
          pair_d = record_address;
          asked_d = 1'b0;
          state_d = AdoptAsk;
        end
      end
      Post: begin
        post_ready_o = 1'b1;
        elder_known_d = 1'b0;
        if (seen.posted) begin
          grants_push = post_i.rendezvous && seen.rendezvous && seen.granted &&
                        seen.limit == seen.total;
          state_d = Idle;
        end else begin
          turns = 1'b1;
          grants_push = record_new.rendezvous;
          state_d = seen.listed ? Kick : Idle;
          if (post_refused) begin
            fail_valid_o = 1'b1;
            fail_code_o = ErrorCodeTruncated;
            turns = 1'b0;
            grants_push = 1'b0;
            state_d = Idle;
          end
        end
        record_write = 1'b1;
        kick_d = post_i.id;
      end

      Grant: state_d = grants_due ? GrantStep : Idle;
      GrantStep: begin
        record_write = 1'b1;
        state_d = GrantSend;
      end
      GrantSend: begin
        transmit_valid_o = 1'b1;
        if (transmit_ready_i) state_d = Idle;
      end

      Segment: begin
        store_early_d = verdict == VerdictEarly;
        offer_id_d = '{slot: pair_q.slot, entry: seen.entry};
        offer_pair_d = pair_q;
        unique case (verdict)
          VerdictEarly: state_d = Store;
          VerdictWait: state_d = Idle;
          VerdictAdopt: state_d = Adopt;
          VerdictGrant: begin
            grant_valid_o = 1'b1;
            header_done = grant_ready_i;
            if (grant_ready_i) state_d = Idle;
          end
          VerdictRequest: begin
            header_done = 1'b1;
            binds = kind.is_pair;
            record_write = !request_bad;
            grants_push = fresh_pair && !request_bad;
            fail_valid_o = request_bad;
            if (request_bad) fail_code_o = refusal;
            state_d = Idle;
          end
          VerdictTake: begin
            binds = kind.is_pair && !kind.is_write;
            record_write = kind.is_pair && !kind.is_write;
            state_d = Store;
            if (seen.posted && !seen.fan_in && !seen.listed && seen.written == '0 && !empty) begin
              offering_d = 1'b1;
              state_d = Idle;
            end
          end
          default: begin
            // Dropped, or refused.
            fail_valid_o = verdict == VerdictRefuse;
            if (verdict == VerdictRefuse) fail_code_o = refusal;
            binds = verdict == VerdictRefuse && kind.is_pair && !kind.is_write;
            header_done = 1'b1;
            if (!empty) way = WayDrop;
            owed_bypass = kind.is_data && !kind.is_write;
            state_d = Idle;
          end
        endcase
      end

      Offered: begin
        if (accepted_q) begin
          turns = header.last;
          record_write = 1'b1;
          grants_return = header.last && seen.rendezvous && seen.ample;
          owed_bypass = !kind.is_write;
          grants_ask = 1'b1;
          way = WayBypass;
          header_done = 1'b1;
          state_d = Idle;
          offering_d = 1'b0;
          answered_d = 1'b0;
        end else begin
          offering_d = 1'b0;
          answered_d = 1'b0;
          state_d = Store;
        end
      end

      Store: begin
        write_command_valid_o = free_valid && store_ready && !empty;
        if (stores) begin
          free_take = 1'b1;
          record_write = !store_early_q;
          header_done = 1'b1;
          if (!empty) way = WayBuffer;
          state_d = Idle;
        end
      end

      Kick: if (kick_ready_i) state_d = Idle;

      ClearRead: begin
        state_d = Idle;
        if (untouched && !own.point_to_point && exchanges_q[pair_q.slot] && any_early) begin
          // What was early for it is its own. A call that exchanges nothing with others has no sequence: that in its
          // context may be a collective's, and what came early for it stays.
          if (!must_wait) state_d = Adopt;
        end else if (known && seen.written != '0) begin
          // Segments on their way to buffers come first.
        end else if (known && seen.listed) begin
          state_d = ClearTake;
        end else begin
          if (known) begin
            grants_return = seen.posted && seen.rendezvous && seen.ample;
            grants_return_next = seen.next.posted && seen.next.ample;
            record_write = 1'b1;
          end
          clear_rank_d = clear_rank_q + 1'b1;
          if (clear_rank_q == '1) begin
            cleared_d = !epoch_over;
            forgets = !epoch_over;
            if (epoch_over) begin
              pair_d = '{slot: clear_slot_i, peer: '0};
              state_d = WipeRead;
            end
          end
        end
      end
      ClearTake: begin
        record_write = 1'b1;
        info_taken_d = seen.head;
        signal_ends_d = 1'b1;
        state_d = Idle;
      end

      WipeRead: begin
        record_read = 1'b1;
        early_op = EarlyAim;
        early_bucket = bucket_t'(pair_q);
        state_d = Wipe;
      end
      Wipe: begin
        record_void = 1'b1;
        record_write = 1'b1;
        if (wipe_all_q) early_op = EarlyVoid;
        pair_d = pair_q + 1'b1;
        state_d = WipeRead;
        if (wipe_ends) begin
          wipe_all_d = 1'b0;
          forgets = !wipe_all_q;
          cleared_d = !wipe_all_q;
          state_d = Idle;
        end
      end

      default: state_d = Idle;
    endcase
  end

  assign received_ready_o = header_done;
  assign write_command_address_o = BufferBase + address_t'(free_buffer) * address_t'(BufferBytes);
  assign write_command_bytes_o = segment_bytes;
  assign grant_pair_o = pair_q;
  assign grant_limit_o = grant_early ? info.total : header.message_bytes;
  assign grant_slot_o = grant_early ? info.signature[15:0] : header.token_slot;
  assign grant_generation_o = grant_early ? info.signature[31:16] : header.token_generation;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= WipeRead;
      store_early_q <= 1'b0;
      wipe_all_q <= 1'b1;
      pair_q <= '0;
      kick_q <= '0;
      info_taken_q <= '0;
      offering_q <= 1'b0;
      offer_id_q <= '0;
      offer_pair_q <= '0;
      answered_q <= 1'b0;
      accepted_q <= 1'b0;
      elder_known_q <= 1'b0;
      elder_q <= '0;
      take_ready_q <= 1'b0;
      head_answer_q <= 1'b0;
      post_ready_q <= 1'b0;
      adopt_ready_q <= 1'b0;
      mute_q <= 1'b0;
      signal_ends_q <= 1'b0;
      matched_q <= 1'b0;
      asked_q <= 1'b0;
      clear_rank_q <= '0;
      cleared_q <= 1'b0;
    end else begin
      state_q <= state_d;
      store_early_q <= store_early_d;
      pair_q <= next_pair;
      kick_q <= kick_d;
      info_taken_q <= info_taken_d;
      offering_q <= offering_d;
      offer_id_q <= offer_id_d;
      offer_pair_q <= offer_pair_d;
      answered_q <= answered_d;
      accepted_q <= accepted_d;
      wipe_all_q <= wipe_all_d;
      elder_known_q <= elder_known_d && !forgets;
      elder_q <= elder_d;
      take_ready_q <= take_ready_o;
      head_answer_q <= head_answer_o;
      post_ready_q <= post_ready_o;
      adopt_ready_q <= adopt_ready_o;
      mute_q <= mute_d;
      signal_ends_q <= signal_ends_d;
      matched_q <= matched_d;
      asked_q <= asked_d;
      clear_rank_q <= clear_rank_d;
      cleared_q <= cleared_d;
    end
  end

  `ifndef SYNTHESIS
  // Epochs must say what a bit for each pair would.
  logic [Pairs-1:0] known_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      known_q <= '0;
    end else begin
      if (record_write && state_q != Wipe) known_q[pair_q] <= 1'b1;
      if (forgets) known_q[{clear_slot_i, rank_t'(0)} +: Ranks] <= '0;
    end
  end
  logic looks_q;                           // the record has just been read
  always_ff @(posedge clk_i) looks_q <= rst_ni && record_read && state_d != Wipe;
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!looks_q || known == known_q[pair_q]) else $error("a record's epoch is not its call's");
      assert (!(state_q inside {Append, Take, HeadShow, Post, GrantStep, ClearTake}) || known || sweeps)
        else $error("a record is used of a pair that is not known");
      assert (state_q != Store || store_early_q || known) else $error("a segment is stored of a pair that is not known");
      assert (state_q != Offered || known) else $error("an offer of a pair that is not known");
      assert (!(offering_d && !offering_q) || known) else $error("an offer to a pair that is not known");
    end
  end
  `endif

endmodule
