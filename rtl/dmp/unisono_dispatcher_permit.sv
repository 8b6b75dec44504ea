// Whether a move may go on, and how its message goes: on credit, by request, or by grant.
//
// Producers and streams come first, then the turn of the message. A short message goes on credit; without any, its peer
// is asked to grant it. A long one goes as far as it is granted. A long point-to-point message that is not granted yet
// takes a credit for each segment (Open), of which some are left to short messages; without any its peer is asked, or,
// if that has the first segment, the rest waits for its grant. While it goes on credit it is not announced, so only one
// of a pair begins so at a time.
//
// Tells what is done in the steps Credit, Grants, Size and Open, and what is known of the move when its job is handed
// over in Dispatch.
//
// Latency: none. Throughput: one look at a time.

module unisono_dispatcher_permit
  import unisono_look_pkg::*;
(
  // The look under way; other fields are of others.
  // verilator lint_off UNUSEDSIGNAL
  input  look_t     look_i,
  input  run_t      run_i,
  input  progress_t progress_i,
  input  size_t     size_i,
  input  state_t    state_i,
  // verilator lint_on UNUSEDSIGNAL

  // Questions, and their answers; see unisono_dispatcher_look.
  output logic      ask_credit_o,
  output logic      ask_keep_o,
  output logic      ask_adopt_o,
  input  logic      credit_ready_i,
  input  logic      credit_answer_i,
  input  logic      credit_granted_i,
  input  logic      adopt_ready_i,

  output permit_t   permit_o
);

  logic opens;                                 // a long message whose next segment may go before it is granted
  logic by_grant, credit_asked;

  assign opens = run_i.opens && state_i.point_to_point && (!progress_i.requested || progress_i.opening);
  assign by_grant = run_i.send && !run_i.eager;
  assign credit_asked = !credit_answer_i && (look_i.credit_asked || credit_ready_i);

  always_comb begin
    permit_o = '{
      step: look_i.step,
      offered: look_i.offered,
      asks: look_i.asks,
      adopted: look_i.adopted,
      bytes: look_i.bytes,
      eager: run_i.eager,
      progress: progress_i,
      // A short message leaves the grant alone that has come for a long one behind it.
      forgets: !run_i.eager || opens,
      events: '0,
      default: 1'b0
    };
    ask_credit_o = 1'b0;
    ask_keep_o = 1'b0;
    ask_adopt_o = 1'b0;

    unique case (look_i.step)
      StepCredit: begin
        if (!state_i.follows && !look_i.credit_asked) begin
          permit_o.events.follow_waits = 1'b1;
          permit_o.refuses = look_i.offered;
          permit_o.step = StepIdle;
        end else if (!state_i.streams && !look_i.credit_asked) begin
          permit_o.events.stream_waits = 1'b1;
          permit_o.refuses = look_i.offered;
          permit_o.step = StepIdle;
        end else if ((run_i.put || run_i.get) && state_i.remote_busy) begin
          permit_o.events.again = 1'b1;
          permit_o.step = StepIdle;
        end else if (run_i.get) begin
          permit_o.events.remote_begin = 1'b1;
          permit_o.progress.done = 1'b1;
          permit_o.writes = 1'b1;
          permit_o.step = StepIdle;
        end else if (run_i.put) begin
          permit_o.bytes = size_i.own;
          permit_o.step = StepSpace;
        end else if (!run_i.send) begin
          permit_o.bytes = size_i.own;
          permit_o.computes = 1'b1;
          permit_o.step = StepDispatch;
        end else if (state_i.held) begin
          // It is kicked when it is its turn.
          permit_o.step = StepIdle;
        end else if (run_i.eager) begin
          permit_o.bytes = size_i.own;
          if (progress_i.credited) begin
            permit_o.step = StepSpace;
          end else begin
            ask_credit_o = !look_i.credit_asked;
            permit_o.credit_asked = credit_asked;
            if (credit_answer_i) begin
              permit_o.progress.credited = credit_granted_i;
              permit_o.writes = credit_granted_i;
              // Credit may be held by messages that the peer takes only after this one, so it is asked.
              permit_o.asks = !credit_granted_i;
              permit_o.step = StepSpace;
            end
          end
        end else if ((state_i.point_to_point || state_i.to_switch) && !progress_i.requested && !opens) begin
          // A receive that does not know of it, and a switch that knows no calls, are asked for place.
          permit_o.asks = 1'b1;
          permit_o.step = StepSpace;
        end else begin
          permit_o.adopted = 1'b0;
          permit_o.step = StepSize;
        end
        if (permit_o.asks) begin
          // What is at the head of Rx does not wait for it.
          permit_o.bytes = '0;
          permit_o.refuses = look_i.offered;
          permit_o.offered = 1'b0;
        end
      end

      StepGrants: begin
        ask_adopt_o = 1'b1;
        if (adopt_ready_i) begin
          permit_o.adopted = 1'b1;
          permit_o.step = StepSize;
        end
      end

      StepSize: begin
        permit_o.bytes = size_i.sized;
        permit_o.computes = 1'b1;
        permit_o.step = run_i.send ? StepSpace : StepDispatch;
        if (by_grant && !size_i.granted && opens) begin
          permit_o.step = StepOpen;
        end else if (by_grant && !size_i.granted && !look_i.adopted) begin
          permit_o.step = StepGrants;
        end else if (by_grant && size_i.waits) begin
          // The next grant kicks; until it comes, others may go before it.
          permit_o.writes = progress_i.opening;
          permit_o.progress.opening = 1'b0;
          permit_o.events.announced = progress_i.opening;
          permit_o.step = StepIdle;
          permit_o.refuses = look_i.offered;
        end
      end

      StepOpen: begin
        permit_o.bytes = size_i.own;
        ask_credit_o = !look_i.credit_asked;
        ask_keep_o = 1'b1;
        permit_o.credit_asked = credit_asked;
        if (credit_answer_i) begin
          permit_o.progress.credited = credit_granted_i;
          permit_o.eager = credit_granted_i;
          permit_o.step = StepSpace;
          if (!credit_granted_i && progress_i.requested) begin
            // The rest goes when it is granted, and others may go before it.
            permit_o.progress.opening = 1'b0;
            permit_o.events.announced = 1'b1;
            permit_o.step = StepIdle;
          end else if (!credit_granted_i) begin
            permit_o.asks = 1'b1;
            permit_o.bytes = '0;
          end
          permit_o.writes = 1'b1;
        end
      end

      StepDispatch: begin
        if (look_i.asks) begin
          permit_o.progress.requested = 1'b1;
        end else if (opens) begin
          permit_o.progress.opening = run_i.eager && !size_i.last;
          permit_o.progress.requested = 1'b1;
          permit_o.progress.credited = 1'b0;
        end
        // Of long messages to a peer only one begins on credit at a time.
        permit_o.events.announced = look_i.asks || (run_i.send && !run_i.put && !permit_o.progress.opening);
      end

      default: ;
    endcase
  end

endmodule
