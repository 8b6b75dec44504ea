// The dispatcher's steps: which move is looked at, and what is done for it until it cannot go on.
//
// A look begins in Idle, with an offer of Rx first, then a move that issues, one whose local result is there, a kicked
// one. What holds nothing can wait: a segment and producers come before credit, credit before space, and space is the
// only thing that is asked for again in turn. Whether the move may go on, and whether its message goes on credit, by
// request or by grant, is told by unisono_dispatcher_permit. A look ends in Idle, with a job or without; its move is
// then kicked, or asks to be looked at again. Clearing a call goes before all looks: pairs are gone through until the
// slot holds nothing, and credit for what is not sent is given back.
//
// Latency: a look that finds everything takes 5 to 8 cycles; see the page. Throughput: one look at a time.

module unisono_dispatcher_look
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_look_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // What there is to be looked at.
  input  logic           clear_valid_i,
  input  slot_t          clear_slot_i,
  input  logic           offer_valid_i,
  input  move_id_t       offer_id_i,
  input  segment_bytes_t offer_bytes_i,
  input  message_bytes_t offer_total_i,
  input  logic           issue_valid_i,
  input  move_id_t       issue_id_i,
  input  logic           wake_valid_i,
  input  move_id_t       wake_id_i,
  input  logic           next_valid_i,
  input  move_id_t       next_id_i,
  output takes_t         takes_o,

  // The look under way.
  output look_t          look_o,
  output run_t           run_o,
  output progress_t      progress_o,
  output segment_t       segment_o,
  output move_id_t       next_id_o,                // and in the next cycle
  output run_t           next_run_o,
  output message_bytes_t next_position_o,

  // Its memories.
  output memory_command_t memory_o,
  output progress_t       progress_write_o,
  input  run_t            run_i,
  input  progress_t       progress_i,
  input  logic            live_i,

  // Its move as it was given, and what it becomes in Decode.
  input  logic [Ranks-1:0] peers_i,
  input  logic             from_stream_i,
  input  logic             binds_i,
  input  logic             ready_i,
  input  lowered_t         lowered_i,

  output list_command_e    list_command_o,
  input  list_t            list_i,
  input  rank_t            pool_word_i,

  output logic             measures_o,
  output logic             arrives_o,
  output segment_bytes_t   arrives_bytes_o,
  // Where the piece ends is asked elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  size_t            size_i,
  // verilator lint_on UNUSEDSIGNAL

  output lane_command_t    lane_o,

  // The pair that it sends to, and which messages begin and end.
  output logic       begins_o,
  output rank_t      begins_peer_o,
  output logic       ends_o,
  output logic [1:0] forget_o,
  input  logic       pair_sends_i,
  input  entry_t     pair_sender_i,
  input  logic       holds_i,                      // the slot has messages or grants

  input  state_t     state_i,
  // Questions to others; each lasts until it is taken or answered. They do not stand in one record, as some answers
  // come in the same cycle.
  output logic       ask_credit_o,
  output logic       ask_keep_o,                   // some are left to short messages
  output logic       ask_credit_back_o,
  output logic       ask_adopt_o,
  output logic       ask_space_o,
  output logic       ask_post_o,
  output logic       ask_head_o,
  output logic       ask_take_o,
  output logic       ask_job_o,
  input  answers_t   answers_i,
  input  segment_t   head_i,
  output events_t    events_o
);

  look_t look_d, look_q;
  run_t run_d, run_q;
  progress_t progress_d, progress_q;
  segment_t segment_d, segment_q;
  logic live, last_of_move;
  permit_t permit;

  assign live = live_i || look_q.issued_here;
  assign last_of_move = size_i.last && !list_i.makes && !list_i.keeps;

  unisono_dispatcher_permit u_permit (
    .look_i(look_q), .run_i(run_q), .progress_i(progress_q), .size_i, .state_i,
    .credit_ready_i(answers_i.credit_ready), .credit_answer_i(answers_i.credit_answer),
    .credit_granted_i(answers_i.credit_granted), .adopt_ready_i(answers_i.adopt_ready),
    .ask_credit_o, .ask_keep_o, .ask_adopt_o, .permit_o(permit)
  );

  assign look_o = look_q;
  assign run_o = run_q;
  assign progress_o = progress_q;
  assign segment_o = segment_q;
  assign next_id_o = look_d.id;
  assign next_run_o = run_d;
  assign next_position_o = progress_d.position;

  // A segment for an arrival: the one at the head of Rx, or the oldest one in a buffer.
  assign arrives_o = look_q.step == StepHead && (look_q.offered || (run_q.arrival && answers_i.head_answer));
  assign arrives_bytes_o = look_q.offered ? offer_bytes_i : head_i.bytes;

  always_comb begin
    look_d = look_q;
    look_d.cleared = look_q.cleared && clear_valid_i;
    look_d.credit_asked = 1'b0;
    look_d.space_asked = 1'b0;
    look_d.issued_here = look_q.step == StepDecode;
    run_d = run_q;
    progress_d = progress_q;
    segment_d = segment_q;
    progress_write_o = progress_q;
    takes_o = '0;
    memory_o = '0;
    list_command_o = ListKeep;
    measures_o = 1'b0;
    lane_o = '0;
    begins_o = 1'b0;
    begins_peer_o = lowered_i.run.peer;
    ends_o = 1'b0;
    forget_o = '0;
    ask_credit_back_o = 1'b0;
    ask_space_o = 1'b0;
    ask_post_o = 1'b0;
    ask_head_o = 1'b0;
    ask_take_o = 1'b0;
    ask_job_o = 1'b0;
    events_o = '0;

    unique case (look_q.step)
      StepIdle: begin
        look_d.offered = 1'b0;
        look_d.asks = 1'b0;
        if (clear_valid_i && !look_q.cleared) begin
          look_d.id = '{slot: clear_slot_i, entry: '0};
          look_d.step = StepClear;
        end else if (offer_valid_i && !look_q.offer_answer) begin
          // Rx waits for the answer, so an offer goes first.
          events_o.begins = 1'b1;
          look_d.id = offer_id_i;
          look_d.offered = 1'b1;
          memory_o.read_run = 1'b1;
          memory_o.read_move = 1'b1;
          look_d.step = StepLook;
        end else if (issue_valid_i) begin
          takes_o.issue = 1'b1;
          events_o.begins = 1'b1;
          look_d.id = issue_id_i;
          memory_o.read_move = 1'b1;
          look_d.step = StepBind0;
        end else if (wake_valid_i) begin
          events_o.begins = 1'b1;
          look_d.id = wake_id_i;
          memory_o.read_run = 1'b1;
          look_d.step = StepWake;
        end else if (next_valid_i) begin
          takes_o.next = 1'b1;
          events_o.begins = 1'b1;
          look_d.id = next_id_i;
          memory_o.read_run = 1'b1;
          memory_o.read_move = 1'b1;
          look_d.step = StepLook;
        end
      end

      StepWake: begin
        takes_o.wake = 1'b1;
        progress_d = progress_i;
        progress_d.making = 1'b0;
        progress_d.made = 1'b1;
        progress_write_o = progress_d;
        memory_o.progress_write = live;
        events_o.again = live;
        look_d.step = StepIdle;
      end

      StepBind0: look_d.step = StepBind1;
      StepBind1: look_d.step = binds_i ? StepBind2 : StepDecode;
      StepBind2: look_d.step = StepDecode;

      StepDecode: if (ready_i) begin
        memory_o.run_write = 1'b1;
        progress_write_o = '0;
        progress_write_o.credited = lowered_i.credited;
        progress_write_o.peers = peers_i;
        progress_write_o.peer = lowered_i.peer;
        progress_write_o.made = !from_stream_i;
        memory_o.progress_write = 1'b1;
        run_d = lowered_i.run;
        progress_d = progress_write_o;
        memory_o.live_raise = 1'b1;
        measures_o = 1'b1;
        if (lowered_i.outside) begin
          events_o.fail = 1'b1;
          look_d.step = StepIdle;
          // Nothing of it is sent, but the credit that it has is given back.
          progress_write_o.done = 1'b1;
          begins_o = lowered_i.credited;
        end else if (!lowered_i.exists) begin
          events_o.consumed = 1'b1;
          events_o.sent = 1'b1;
          events_o.complete = 1'b1;
          look_d.step = StepIdle;
        end else begin
          begins_o = run_d.send && !run_d.put;
          run_d.eager = run_d.eager || (run_d.opens && lowered_i.credited);
          look_d.step = run_d.fan_in ? StepListWait : run_d.arrival ? StepPost
                        : lowered_i.credited && (lowered_i.one_piece || run_d.opens) ? StepSpace
                        : !run_d.fan_out && state_i.free ? StepCredit : StepLook;
          // What goes on to space from here is one segment.
          look_d.bytes = run_d.bytes < message_bytes_t'(run_d.segment) ? segment_bytes_t'(run_d.bytes) : run_d.segment;
          list_command_o = ListPost;
        end
      end

      StepPost: begin
        // The manager kicks when a segment is there, now or later.
        ask_post_o = 1'b1;
        if (answers_i.post_ready) begin
          look_d.step = run_q.fan_in && !list_i.last ? StepListWait : StepIdle;
          list_command_o = ListNext;
        end
      end

      StepListWait: look_d.step = list_i.counts ? StepListCount : StepListRank;
      StepListCount: begin
        list_command_o = ListCount;
        look_d.step = StepListWait;
      end
      StepListRank: begin
        run_d.source = pool_word_i;
        look_d.step = list_i.walk == WalkPost ? StepPost : StepHead;
      end

      StepLook: begin
        if (!look_q.issued_here) begin
          run_d = run_i;
          progress_d = progress_i;
        end
        measures_o = 1'b1;
        // What was asked for is sent when it is granted, however short it is; what has its credit goes with that.
        run_d.eager = (run_d.eager && !progress_d.requested) || progress_d.credited;
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
        look_d.step = progress_d.done || progress_d.making ? StepIdle
                      : run_d.fan_in ? StepListWait
                      : !run_d.arrival && !look_q.offered && state_i.free ? StepCredit : StepHead;
        list_command_o = ListCheck;
        // What several peers get is needed more than once, so it stands in a buffer.
        if (!live || (look_q.offered && run_d.fan_out)) begin
          look_d.step = StepIdle;
          takes_o.offer_answer = look_q.offered;
        end
      end

      StepHead: begin
        if (look_q.offered) begin
          segment_d = '{valid: 1'b1, buffer: '0, bytes: offer_bytes_i, last: 1'b0, total: offer_total_i};
          // The sender of a point-to-point message says how long it is.
          if (state_i.point_to_point) run_d.bytes = offer_total_i;
          look_d.step = StepCredit;
        end else if (run_q.arrival) begin
          ask_head_o = 1'b1;
          if (answers_i.head_answer) begin
            segment_d = head_i;
            if (state_i.point_to_point) run_d.bytes = head_i.total;
            look_d.step = !head_i.valid ? StepIdle : list_i.walk == WalkDispatch ? StepDispatch : StepCredit;
            if (run_q.fan_in && list_i.walk == WalkCheck && head_i.valid) begin
              // Members cut alike, so the segments of all peers have one length.
              if (!list_i.first && head_i.bytes != segment_q.bytes) begin
                events_o.fail = 1'b1;
                look_d.step = StepIdle;
              end else if (!list_i.last) begin
                list_command_o = ListNext;
                look_d.step = StepListWait;
              end
            end
          end
        end else begin
          look_d.step = StepCredit;
        end
      end

      StepCredit, StepGrants, StepSize, StepOpen: begin
        look_d.step = permit.step;
        look_d.offered = permit.offered;
        look_d.asks = permit.asks;
        look_d.adopted = permit.adopted;
        look_d.credit_asked = permit.credit_asked;
        look_d.bytes = permit.bytes;
        run_d.eager = permit.eager;
        progress_d = permit.progress;
        progress_write_o = progress_d;
        memory_o.progress_write = permit.writes;
        lane_o.compute = permit.computes;
        takes_o.offer_answer = permit.refuses;
        events_o = permit.events;
      end

      StepSpace: begin
        ask_space_o = !look_q.space_asked && !state_i.overtakes;
        lane_o.choose = !look_q.space_asked;
        lane_o.blocked = state_i.overtakes && !look_q.space_asked;
        if (lane_o.blocked || (answers_i.space_answer && !answers_i.space_granted)) begin
          look_d.step = StepIdle;
          takes_o.offer_answer = look_q.offered;
          events_o.again = !look_q.offered;
        end else if (answers_i.space_answer) begin
          look_d.step = StepDispatch;
        end else begin
          look_d.space_asked = look_q.space_asked || answers_i.space_ready;
        end
      end

      StepDispatch: begin
        if (look_q.asks) begin
          ask_job_o = 1'b1;
          if (answers_i.job_ready) begin
            events_o = permit.events;
            lane_o.sent = 1'b1;
            progress_d = permit.progress;
            progress_write_o = progress_d;
            memory_o.progress_write = 1'b1;
            look_d.step = StepIdle;
          end
        end else if (run_q.fan_in && list_i.walk == WalkCheck) begin
          list_command_o = ListDispatch;
          look_d.step = StepListWait;
        end else if (run_q.fan_in && !list_i.last) begin
          // One message of several.
          ask_job_o = run_q.bytes != '0 && (list_i.keeps || answers_i.take_ready);
          ask_take_o = !list_i.keeps && answers_i.job_ready;
          if (list_i.keeps ? answers_i.job_ready || run_q.bytes == '0 : answers_i.take_ready) begin
            list_command_o = ListNext;
            look_d.step = StepListWait;
          end
        end else if (run_q.bytes == '0 && !run_q.send) begin
          // A signal that only arrives needs no lane.
          ask_take_o = 1'b1;
          if (answers_i.take_ready) begin
            events_o.consumed = run_q.fan_in;
            events_o.complete = 1'b1;
            progress_d.done = 1'b1;
            progress_write_o = progress_d;
            memory_o.progress_write = 1'b1;
            look_d.step = StepIdle;
          end
        end else begin
          ask_job_o = !run_q.arrival || look_q.offered || list_i.keeps || answers_i.take_ready;
          ask_take_o = run_q.arrival && !look_q.offered && !list_i.keeps && answers_i.job_ready;
          if (ask_job_o && answers_i.job_ready) begin
            progress_d = permit.progress;
            events_o = permit.events;
            events_o.remote_begin = run_q.put && progress_q.position == '0;
            if (!list_i.makes && !list_i.keeps) progress_d.position = size_i.after;
            progress_d.done = last_of_move;
            progress_d.making = list_i.makes;
            events_o.consumed = size_i.last && run_q.fan_in && !list_i.keeps;
            lane_o.sent = run_q.send;
            events_o.sent = last_of_move && run_q.send && !run_q.put;
            if (size_i.last && run_q.send && !run_q.put) begin
              ends_o = 1'b1;
              forget_o[size_i.parity] = permit.forgets;
            end
            if (run_q.fan_out && run_q.send) begin
              // On to the next peer with the same segment, or to the first one with the next segment.
              progress_d.peers = list_i.more ? list_i.peers : peers_i;
              progress_d.peer = list_i.more ? list_i.peer : lowered_i.peer;
              if (!list_i.more) progress_d.made = !from_stream_i;
              progress_d.credited = 1'b0;
              progress_d.requested = 1'b0;
              begins_o = list_i.more && progress_q.position == '0;
              begins_peer_o = list_i.peer;
            end
            progress_write_o = progress_d;
            memory_o.progress_write = 1'b1;
            // What waits for its local result is woken.
            events_o.again = !last_of_move && !list_i.makes;
            takes_o.offer_answer = look_q.offered;
            takes_o.offer_accepted = look_q.offered;
            look_d.step = StepIdle;
          end
        end
      end

      StepClear: begin
        run_d.peer = '0;
        look_d.step = StepClearPeer;
        if (!holds_i) begin
          memory_o.live_clear = 1'b1;
          lane_o.clear = 1'b1;
          look_d.cleared = 1'b1;
          look_d.step = StepIdle;
        end
      end
      StepClearPeer: begin
        // Its message has been begun here and not yet ended; or a grant has come for one that will not be.
        forget_o = 2'b11;
        look_d.id.entry = pair_sender_i;
        memory_o.read_run = 1'b1;
        if (pair_sends_i) begin
          look_d.step = StepClearCredit;
        end else begin
          run_d.peer = run_q.peer + 1'b1;
          if (run_q.peer == '1) look_d.step = StepClear;
        end
      end
      StepClearCredit: begin
        ask_credit_back_o = live && progress_i.credited;
        if (!ask_credit_back_o || answers_i.credit_back_ready) begin
          ends_o = 1'b1;
          look_d.step = StepClearPeer;
        end
      end

      StepSweep: begin
        ends_o = 1'b1;
        forget_o = 2'b11;
        memory_o.live_clear = 1'b1;
        {look_d.id.slot, run_d.peer} = {look_q.id.slot, run_q.peer} + 1'b1;
        if ({look_q.id.slot, run_q.peer} == '1) look_d.step = StepIdle;
      end

      default: look_d.step = StepIdle;
    endcase

    look_d.offer_answer = takes_o.offer_answer;
    events_o.parks = look_d.step == StepIdle &&
                     look_q.step inside {StepPost, StepHead, StepCredit, StepGrants, StepSize, StepOpen, StepSpace,
                                         StepDispatch};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      look_q <= '0;
      look_q.step <= StepSweep;
      run_q <= '0;
      progress_q <= '0;
      segment_q <= '0;
    end else begin
      look_q <= look_d;
      run_q <= run_d;
      progress_q <= progress_d;
      segment_q <= segment_d;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      // A message that opens reads memory, so Open refuses no offer.
      opens_without_offer: assert (look_q.step != StepOpen || !look_q.offered);
      asks_behind_credit: assert (look_q.step inside {StepIdle, StepSpace, StepDispatch} || !look_q.asks);
    end
  end
`endif

endmodule
