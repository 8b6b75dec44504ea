// The operations on pairs, one at a time: what each does in its steps, and what is asked of the other parts of the
// receive-buffer manager meanwhile. Which is next, what is early, offers and clears are parts of their own.
//
// An operation reads the record of its pair in its first cycle, and writes it in its second or third. The record, and
// what becomes of it, stand outside.
//
// Latency: an operation takes 2 cycles; a take, a head, a post and a grant 3; longer where early lists are gone
// through, or somebody who is asked does not answer. Throughput: one operation at a time.

module unisono_rbm_operations
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // As of the manager.
  input  logic     clear_valid_i, clear_failed_i,
  input  slot_t    clear_slot_i,
  output logic     clear_done_o,
  input  logic     received_valid_i,
  output logic     received_ready_o,
  output logic     offer_valid_o,
  output move_id_t offer_id_o,
  input  logic     offer_answer_i, offer_accepted_i,
  input  logic     post_valid_i,
  output logic     post_ready_o,
  // Of it other fields count elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  post_t    post_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic     head_valid_i,
  input  pair_t    head_pair_i,
  input  entry_t   head_entry_i,
  output logic     head_answer_o,
  output segment_t head_o,
  input  logic     take_valid_i,
  input  pair_t    take_pair_i,
  output logic     take_ready_o,
  output logic     kick_valid_o,
  input  logic     kick_ready_i,
  output move_id_t kick_id_o,
  output logic     turn_valid_o,
  output move_id_t turn_id_o,
  output generation_t turn_generation_o,
  input  logic     adopt_valid_i,
  input  pair_t    adopt_pair_i,
  output logic     adopt_ready_o,
  output logic     grant_valid_o,
  input  logic     grant_ready_i,
  output logic     transmit_valid_o,
  input  logic     transmit_ready_i,
  output logic     write_command_valid_o,
  output logic     fail_valid_o,
  output slot_t    fail_slot_o,
  output error_code_e fail_code_o,

  // The pair under way, its record, and what becomes of that.
  output state_e   state_o,
  output pair_t    pair_o, next_pair_o, read_pair_o,
  output logic     record_read_o, record_write_o, record_void_o,
  // Of records other fields count elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  record_t  seen_i, record_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic     known_i, post_refused_i,
  output logic     forgets_o,                        // all of the slot that is cleared
  input  logic     epoch_over_i,                     // not before its records have been made void
  output logic     wipe_o,                           // all records are made void
  input  logic     point_to_point_i, point_to_point_q_i,   // its call; that of the cycle before
  input  logic [Calls-1:0] exchanges_i,              // calls that exchange something with others

  // The head of Rx.
  input  logic     match_any_i,
  input  pair_t    match_pair_i, token_pair_i,
  output logic     matched_o,
  input  logic [Calls-1:0] receives_first_i,
  input  slot_t    elder_now_i,
  output logic     binds_o,
  // Of what is known of segments other fields count elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  kind_t    kind_i,
  input  info_t    head_info_i, info_i,              // of the head; of the oldest segment of the pair
  // verilator lint_on UNUSEDSIGNAL
  input  logic     empty_i, fresh_pair_i, request_bad_i,
  input  verdict_e verdict_i,
  input  error_code_e refusal_i,
  output way_e     way_o,
  input  logic     payload_idle_i,
  output logic     accepted_o,

  // Buffers.
  input  logic     free_valid_i, stores_i,
  input  buffer_t  free_buffer_i,
  output logic     free_take_o, owed_bypass_o,
  output logic     signal_o, signal_mute_o,
  output buffer_t  signal_buffer_o,
  input  logic     signal_full_i,
  input  logic     store_ready_i, shown_valid_i, shown_bad_i,
  output pending_t store_o,
  // verilator lint_off UNUSEDSIGNAL
  input  pending_t shown_i,                          // its buffer counts elsewhere
  // verilator lint_on UNUSEDSIGNAL
  output logic     shown_take_o, appends_o,          // it joins a list that is not empty

  // Early segments.
  output early_op_e early_op_o,
  output logic     early_renew_o,                    // apart, so that what is looked at does not wait for it
  output bucket_t  early_bucket_o,
  output logic     store_early_o,
  input  logic     must_wait_i, untouched_i, early_pending_i, any_early_i, early_has_i, renews_i, sweeps_i,
  input  logic     early_hold_i, early_last_i, early_give_back_i, early_mute_i, grant_early_i, early_fail_i,
  input  logic     early_bad_i,
  input  buffer_t  early_at_i,

  // Grants.
  input  logic     grants_valid_i, grants_due_i,
  input  pair_t    grants_head_i,
  output logic     grants_push_o, grants_ask_o, grants_take_o, grants_return_o, grants_return_next_o
);

  state_e state_d, state_q;
  pair_t pair_d, pair_q, record_address;
  logic reads_match;                                 // the record of the pair that the head of Rx matches, known last
  logic turns;                                       // the record's arrival takes what comes from now on
  logic offers, offer_ends, offering, answered;
  pair_t offer_pair;
  move_id_t kick_d, kick_q;
  logic matched_d, matched_q, store_early_d, store_early_q;
  logic signal_ends_d, signal_ends_q, mute_d, mute_q;
  buffer_t info_taken_d, info_taken_q;

  choice_t choice;
  early_op_e early_first, early_adopts;
  clear_step_t clear;
  adopt_step_t adopt;
  rank_t clear_rank;

  unisono_rbm_choice u_choice (
    .clk_i, .rst_ni, .shown_valid_i, .shown_early_i(shown_i.early), .shown_pair_i(shown_i.pair), .sweeps_i,
    .early_has_i, .renews_i, .early_pending_i, .payload_idle_i, .offering_i(offering), .clear_valid_i,
    .cleared_i(clear_done_o), .clear_failed_i, .epoch_over_i, .signal_full_i,
    .clear_pair_i('{slot: clear_slot_i, peer: clear_rank}), .take_valid_i, .take_ready_i(take_ready_o), .take_pair_i,
    .head_valid_i, .head_answer_i(head_answer_o), .head_pair_i, .post_valid_i, .post_ready_i(post_ready_o),
    .post_pair_i('{slot: post_i.id.slot, peer: post_i.peer}), .adopt_valid_i, .adopt_ready_i(adopt_ready_o),
    .adopt_pair_i, .answered_i(answered), .offer_pair_i(offer_pair), .grants_valid_i, .grants_pair_i(grants_head_i),
    .received_valid_i, .is_write_i(kind_i.is_write), .token_pair_i, .pair_i(pair_q), .choice_o(choice),
    .early_op_o(early_first)
  );

  unisono_rbm_offer u_offer (
    .clk_i, .rst_ni, .begins_i(offers), .looks_i(state_q == Segment), .pair_i(pair_q), .entry_i(seen_i.entry),
    .ends_i(offer_ends), .offer_valid_o, .offer_id_o, .offer_answer_i, .offer_accepted_i, .offering_o(offering),
    .answered_o(answered), .accepted_o, .pair_o(offer_pair)
  );

  // What was early for a call that is cleared is its own. A call that exchanges nothing with others has no sequence:
  // that in its context may be a collective's, and what came early for it stays.
  unisono_rbm_clear u_clear (
    .clk_i, .rst_ni, .clear_valid_i, .clear_slot_i, .clears_i(choice.clears), .epoch_over_i, .clear_done_o,
    .rank_o(clear_rank), .state_i(state_q), .pair_i(pair_q), .known_i, .seen_i,
    .takes_over_i(untouched_i && !point_to_point_i && exchanges_i[pair_q.slot] && any_early_i), .must_wait_i,
    .step_o(clear), .forgets_o, .wipe_o
  );

  unisono_rbm_adopt u_adopt (
    .clk_i, .rst_ni, .state_i(state_q), .slot_i(pair_q.slot), .asks_i(choice.step == AdoptAsk), .forgets_i(forgets_o),
    .untouched_i, .must_wait_i, .sweeps_i, .elder_now_i, .any_early_i, .early_has_i, .early_hold_i, .early_last_i,
    .early_give_back_i, .early_mute_i, .grant_early_i, .early_fail_i, .early_bad_i, .early_op_o(early_adopts),
    .step_o(adopt)
  );

  assign next_pair_o = reads_match ? match_pair_i : pair_d;
  assign read_pair_o = reads_match ? match_pair_i : record_address;
  assign state_o = state_q;
  assign pair_o = pair_q;
  assign matched_o = matched_q;
  assign store_early_o = store_early_q;
  assign signal_o = signal_ends_q;
  assign signal_mute_o = mute_q;
  assign signal_buffer_o = info_taken_q;
  assign kick_valid_o = state_q == Kick;
  assign kick_id_o = kick_q;
  assign turn_valid_o = turns && record_i.posted && !record_i.fan_in;
  assign turn_id_o = '{slot: pair_q.slot, entry: record_i.entry};
  assign turn_generation_o = record_i.program_;

  always_comb begin
    state_d = state_q;
    pair_d = pair_q;
    kick_d = kick_q;
    info_taken_d = info_taken_q;
    way_o = WayNone;
    grants_return_o = 1'b0;
    grants_return_next_o = 1'b0;
    record_read_o = 1'b0;
    reads_match = 1'b0;
    record_address = pair_q;
    record_write_o = 1'b0;
    record_void_o = 1'b0;
    appends_o = 1'b0;
    free_take_o = 1'b0;
    signal_ends_d = 1'b0;
    store_o = '{pair: pair_q, early: store_early_q,
                bucket: hash(head_info_i.communicator, head_info_i.source, head_info_i.key),
                buffer: free_buffer_i, empty: empty_i};
    early_op_o = EarlyNone;
    early_renew_o = 1'b0;
    early_bucket_o = shown_i.bucket;
    store_early_d = store_early_q;
    mute_d = 1'b0;
    adopt_ready_o = 1'b0;
    shown_take_o = 1'b0;
    grants_push_o = 1'b0;
    grants_ask_o = 1'b0;
    grants_take_o = 1'b0;
    post_ready_o = 1'b0;
    head_answer_o = 1'b0;
    head_o = '0;
    take_ready_o = 1'b0;
    grant_valid_o = 1'b0;
    transmit_valid_o = 1'b0;
    write_command_valid_o = 1'b0;
    received_ready_o = 1'b0;
    owed_bypass_o = 1'b0;
    fail_valid_o = 1'b0;
    fail_slot_o = pair_q.slot;
    fail_code_o = ErrorCodeMismatchedCall;
    matched_d = matched_q;
    binds_o = 1'b0;
    turns = 1'b0;
    offers = 1'b0;
    offer_ends = 1'b0;

    unique case (state_q)
      Idle: begin
        state_d = choice.step;
        pair_d = choice.pair;
        record_read_o = choice.reads;
        reads_match = choice.by_match;
        if (choice.reads) record_address = choice.pair;
        early_op_o = early_first;
        early_renew_o = choice.renews;
        grants_take_o = choice.step == Grant;
        if (choice.step == Segment) matched_d = match_any_i;
      end

      Append: begin
        shown_take_o = 1'b1;
        appends_o = seen_i.listed;
        record_write_o = 1'b1;
        kick_d = '{slot: pair_q.slot, entry: seen_i.entry};
        state_d = seen_i.posted && !seen_i.listed ? Kick : Idle;
        if (shown_bad_i) begin
          fail_valid_o = 1'b1;
          fail_code_o = ErrorCodeInternal;
        end
      end

      AppendEarly: begin
        shown_take_o = 1'b1;
        early_op_o = EarlyAppend;
        state_d = Idle;
      end

      AdoptAsk, Adopt, AdoptRead, AdoptCheck, AdoptEnd, PostElder: begin
        state_d = adopt.state;
        early_op_o = early_adopts;
        adopt_ready_o = adopt.ready;
        record_write_o = adopt.writes;
        grant_valid_o = adopt.grants;
        signal_ends_d = adopt.gives_back;
        mute_d = adopt.mute;
        if (adopt.gives_back) info_taken_d = early_at_i;
        fail_valid_o = adopt.fails;
        if (adopt.bad) fail_code_o = ErrorCodeInternal;
        if (adopt.asks_elder) begin
          record_read_o = 1'b1;
          record_address = '{slot: elder_now_i, peer: pair_q.peer};
          pair_d = record_address;
        end
      end

      // info and link of the head are read now, and used in the next cycle.
      TakeRead: state_d = Take;
      Take: begin
        take_ready_o = 1'b1;
        info_taken_d = seen_i.head;
        turns = info_i.last;
        record_write_o = 1'b1;
        grants_return_o = info_i.last && seen_i.rendezvous && seen_i.ample;
        grants_ask_o = 1'b1;
        signal_ends_d = info_i.bytes == '0;
        kick_d = '{slot: pair_q.slot, entry: record_i.entry};
        state_d = info_i.last && record_i.posted && record_i.listed ? Kick : Idle;
      end

      HeadRead: state_d = HeadShow;
      HeadShow: begin
        head_answer_o = 1'b1;
        head_o = '{valid: seen_i.listed && seen_i.posted && seen_i.entry == head_entry_i,
                   buffer: seen_i.head, bytes: info_i.bytes, last: info_i.last, total: info_i.total};
        // What came before its arrival had issued is compared with it here.
        if (head_o.valid && !point_to_point_q_i &&
            (info_i.tag != seen_i.tag || info_i.total != seen_i.total)) begin
          fail_valid_o = 1'b1;
          head_o.valid = 1'b0;
        end
        state_d = Idle;
      end

      PostRead: begin
        state_d = must_wait_i ? Idle : untouched_i ? Adopt : Post;
        if (untouched_i && !must_wait_i && point_to_point_i && !receives_first_i[pair_q.slot]) state_d = PostElder;
      end
      Post: begin
        post_ready_o = 1'b1;
        if (seen_i.posted) begin
          grants_push_o = post_i.rendezvous && seen_i.rendezvous && seen_i.granted &&
                        seen_i.limit == seen_i.total;
          state_d = Idle;
        end else begin
          turns = 1'b1;
          grants_push_o = record_i.rendezvous;
          state_d = seen_i.listed ? Kick : Idle;
          if (post_refused_i) begin
            fail_valid_o = 1'b1;
            fail_code_o = ErrorCodeTruncated;
            turns = 1'b0;
            grants_push_o = 1'b0;
            state_d = Idle;
          end
        end
        record_write_o = 1'b1;
        kick_d = post_i.id;
      end

      Grant: state_d = grants_due_i ? GrantStep : Idle;
      GrantStep: begin
        record_write_o = 1'b1;
        state_d = GrantSend;
      end
      GrantSend: begin
        transmit_valid_o = 1'b1;
        if (transmit_ready_i) state_d = Idle;
      end

      Segment: begin
        store_early_d = verdict_i == VerdictEarly;
        unique case (verdict_i)
          VerdictEarly: state_d = Store;
          VerdictWait: state_d = Idle;
          VerdictAdopt: state_d = Adopt;
          VerdictGrant: begin
            grant_valid_o = 1'b1;
            received_ready_o = grant_ready_i;
            if (grant_ready_i) state_d = Idle;
          end
          VerdictRequest: begin
            received_ready_o = 1'b1;
            binds_o = kind_i.is_pair;
            record_write_o = !request_bad_i;
            grants_push_o = fresh_pair_i && !request_bad_i;
            fail_valid_o = request_bad_i;
            if (request_bad_i) fail_code_o = refusal_i;
            state_d = Idle;
          end
          VerdictTake: begin
            binds_o = kind_i.is_pair && !kind_i.is_write && !head_info_i.continues;
            grants_push_o = head_info_i.opens && seen_i.posted;
            record_write_o = kind_i.is_pair && !kind_i.is_write;
            state_d = Store;
            if (seen_i.posted && !seen_i.fan_in && !seen_i.listed && seen_i.written == '0 && !empty_i) begin
              offers = 1'b1;
              state_d = Idle;
            end
          end
          default: begin
            // Dropped, or refused.
            fail_valid_o = verdict_i == VerdictRefuse;
            if (verdict_i == VerdictRefuse) fail_code_o = refusal_i;
            binds_o = verdict_i == VerdictRefuse && kind_i.is_pair && !kind_i.is_write && !head_info_i.continues;
            received_ready_o = 1'b1;
            if (!empty_i) way_o = WayDrop;
            owed_bypass_o = kind_i.is_data && !kind_i.is_write;
            state_d = Idle;
          end
        endcase
      end

      Offered: begin
        offer_ends = 1'b1;
        if (accepted_o) begin
          turns = head_info_i.last;
          record_write_o = 1'b1;
          grants_return_o = head_info_i.last && seen_i.rendezvous && seen_i.ample;
          owed_bypass_o = !kind_i.is_write;
          grants_ask_o = 1'b1;
          way_o = WayBypass;
          received_ready_o = 1'b1;
          state_d = Idle;
        end else begin
          state_d = Store;
        end
      end

      Store: begin
        write_command_valid_o = free_valid_i && store_ready_i && !empty_i;
        if (stores_i) begin
          free_take_o = 1'b1;
          record_write_o = !store_early_q;
          received_ready_o = 1'b1;
          if (!empty_i) way_o = WayBuffer;
          state_d = Idle;
        end
      end

      Kick: if (kick_ready_i) state_d = Idle;

      ClearRead, ClearTake, WipeRead, Wipe: begin
        state_d = clear.state;
        pair_d = clear.pair;
        record_read_o = clear.reads;
        record_write_o = clear.writes;
        record_void_o = clear.voids;
        grants_return_o = clear.returns;
        grants_return_next_o = clear.returns_next;
        signal_ends_d = clear.gives_back;
        if (clear.gives_back) info_taken_d = seen_i.head;
        if (state_q == WipeRead) begin
          early_op_o = EarlyAim;
          early_bucket_o = bucket_t'(pair_q);
        end
        if (state_q == Wipe && wipe_o) early_op_o = EarlyVoid;
      end

      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= WipeRead;
      store_early_q <= 1'b0;
      pair_q <= '0;
      kick_q <= '0;
      info_taken_q <= '0;
      mute_q <= 1'b0;
      signal_ends_q <= 1'b0;
      matched_q <= 1'b0;
    end else begin
      state_q <= state_d;
      store_early_q <= store_early_d;
      pair_q <= next_pair_o;
      kick_q <= kick_d;
      info_taken_q <= info_taken_d;
      mute_q <= mute_d;
      signal_ends_q <= signal_ends_d;
      matched_q <= matched_d;
    end
  end

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(state_q inside {Append, Take, HeadShow, Post, GrantStep, ClearTake}) || known_i || sweeps_i)
        else $error("a record is used of a pair that is not known");
      assert (state_q != Store || store_early_q || known_i) else $error("a segment is stored of an unknown pair");
      assert (state_q != Offered || known_i) else $error("an offer of a pair that is not known");
      assert (!offers || known_i) else $error("an offer to a pair that is not known");
    end
  end
  `endif

endmodule
