// The steps of a switch's control: a look at a run, from what is known to what is decided.
//
//   pick ─► look ─► begin ─┬─► action ──► judged ─┬─► asks
//                 ▲        ├─► place ──► action   ├─► transfer ─► segment ─► start ─► over
//                 │        └─► transfer           └─► fails
//             other way ◄── nothing goes on this way
//
// Whoever is looked at and has decided nothing yet yields to an urgent run, and is looked at again later. What is decided
// waits for nothing but room at the ports it needs; without that, the run is looked at again.
//
// That a neighbour has called something else is known a cycle after all else: whatever the look does then, it does not.
//
// Latency: a state each cycle; what is asked for is asked in its state. One look at a time.

module unisono_switch_steps (
  input  logic clk_i,
  input  logic rst_ni,

  // The next look.
  input  logic next_valid_i,
  input  logic next_urgent_i,       // of one way
  input  logic next_yields_i,
  output logic pick_o,              // it begins

  // Where this one is.
  output logic look_o,              // records are read
  output logic begin_o,             // what is known is here; of a run that failed, what came is thrown away
  output logic other_way_o,
  output logic place_o,             // of several senders, whose turn it is
  output logic action_o,            // the CCM is asked
  output logic judged_o,            // what its heads need is known
  output logic transfer_o,          // what its message waits for is known
  output logic start_o,             // a fold starts

  // When it begins.
  input  logic thrown_i,            // something is thrown away
  input  logic latest_differs_i,    // a neighbour called something else: in the cycle behind begin_o
  input  logic active_i,            // a message is under way
  input  logic several_i,           // blocks come by several ports
  input  logic nothing_i,           // else: nothing is there
  // Whose turn it is.
  input  logic past_i,              // nobody's any more
  input  logic skips_i,             // nothing comes of this position
  input  logic mine_i,              // what comes is here
  // When it is judged.
  input  logic differs_i,           // calls differ
  input  logic missing_i,           // shares
  input  logic fresh_immediate_i,   // it goes at once
  // Of a message.
  input  logic receiver_differs_i,
  input  logic wants_window_i,      // its senders wait for one
  input  logic gone_i,              // all of it, into the fold
  input  logic here_i,              // its next segment, for all receivers
  input  logic room_i,              // for that
  input  logic immediate_i,
  input  logic folded_i,            // nothing of this way is being folded
  input  logic raises_i,            // its window
  input  logic empty_i,             // a segment without bytes
  // Room at the ports.
  input  logic asks_may_i,
  input  logic windows_may_i,
  input  logic fails_may_i,
  input  logic start_ready_i,

  // What is decided.
  output logic turn_o,              // nothing goes on this way
  output logic again_way_o,         // look at it again, soon
  output logic again_run_o,         // look at its run again
  output logic asks_o,              // receivers are asked
  output logic windows_o,           // senders are granted, or further
  output logic segments_o,          // a segment goes
  output logic starts_o,            // a fold starts
  output logic keeps_o,             // the message's record changes
  output logic over_o,              // the message is over
  output logic fails_o              // the run ends
);

  // A bit for each: most states have few reasons.
  typedef enum logic [4:0] {
    StIdle,
    StLook1,
    StLook2,
    StBegin,
    StTurn,
    StRoot,
    StPlace,
    StAction1,
    StAction2,
    StAction3,
    StEval,
    StAsk,
    StTransfer,
    StWindow,
    StSegment,
    StFetch1,
    StFetch2,
    StStart,
    StOver,
    StFail,
    States
  } state_e;

  logic [States-1:0] state_q, state_d;
  logic turned_q;                   // the other way has been looked at, or need not be
  logic yields_q;                   // to an urgent run
  logic began_q;                    // in the last cycle, and nothing was thrown away
  logic ends;                       // the run ends, for a neighbour has called something else
  logic undecided;

  assign undecided = state_q[StLook1] || state_q[StLook2] || state_q[StTurn] || state_q[StRoot] || state_q[StPlace] ||
                     state_q[StAction1] || state_q[StAction2] || state_q[StAction3];
  assign ends   = began_q && latest_differs_i;
  assign pick_o = !ends && ((state_q[StIdle] && next_valid_i) || (undecided && yields_q && next_urgent_i));

  // ---------------------------------------------------------------- what is decided
  logic goes;                       // the next segment of what is under way may go
  assign goes = !ends && !receiver_differs_i && !wants_window_i && !gone_i && here_i;

  assign turn_o = (state_q[StBegin] && !thrown_i && !active_i && !several_i && nothing_i) ||
                  (state_q[StPlace] && !past_i && !skips_i && !mine_i) ||
                  (state_q[StEval] && !differs_i && missing_i) ||
                  (state_q[StTransfer] && !ends && !receiver_differs_i && !wants_window_i &&
                   (!gone_i && here_i ? !room_i : !(gone_i && folded_i) && !raises_i));

  assign asks_o      = state_q[StAsk] && asks_may_i;
  assign windows_o   = state_q[StWindow] && windows_may_i;
  assign segments_o  = state_q[StSegment] || (state_q[StTransfer] && goes && room_i && immediate_i);
  assign starts_o    = state_q[StStart] && !empty_i;
  assign over_o      = state_q[StOver];
  assign fails_o     = state_q[StFail] && fails_may_i;
  logic started;
  assign started     = state_q[StStart] && (empty_i || start_ready_i);
  assign keeps_o     = asks_o || windows_o || (started && !immediate_i);
  assign again_way_o = keeps_o;
  assign again_run_o = (state_q[StBegin] && thrown_i) || (state_q[StAsk] && !asks_may_i) ||
                       (state_q[StTransfer] && goes && !room_i) || (state_q[StWindow] && !windows_may_i) ||
                       state_q[StOver] || state_q[StFail] || (pick_o && !state_q[StIdle]);

  // ---------------------------------------------------------------- the states
  always_comb begin
    state_d = '0;
    state_d[StLook1]    = pick_o;
    state_d[StLook2]    = (state_q[StLook1] || (state_q[StTurn] && !ends)) && !pick_o;
    state_d[StBegin]    = state_q[StLook2] && !pick_o;
    state_d[StTurn]     = turn_o && !turned_q && !pick_o;
    state_d[StRoot]     = state_q[StBegin] && !thrown_i && !active_i && several_i;
    state_d[StPlace]    = ((state_q[StRoot] && !ends) || (state_q[StPlace] && !past_i && skips_i)) && !pick_o;
    state_d[StAction1]  = (state_q[StBegin] && !thrown_i && !active_i && !several_i && !nothing_i) ||
                          (state_q[StPlace] && !past_i && !skips_i && mine_i && !pick_o);
    state_d[StAction2]  = state_q[StAction1] && !ends && !pick_o;
    state_d[StAction3]  = state_q[StAction2] && !pick_o;
    state_d[StEval]     = state_q[StAction3] && !pick_o;
    state_d[StAsk]      = state_q[StEval] && !differs_i && !missing_i && !fresh_immediate_i;
    state_d[StTransfer] = (state_q[StBegin] && !thrown_i && active_i) ||
                          (state_q[StEval] && !differs_i && !missing_i && fresh_immediate_i);
    state_d[StWindow]   = state_q[StTransfer] && !ends && !receiver_differs_i &&
                          (wants_window_i || (!(!gone_i && here_i) && !(gone_i && folded_i) && raises_i));
    state_d[StSegment]  = state_q[StTransfer] && goes && room_i && !immediate_i;
    state_d[StFetch1]   = segments_o;
    state_d[StFetch2]   = state_q[StFetch1];
    state_d[StStart]    = state_q[StFetch2] || (state_q[StStart] && !started);
    state_d[StOver]     = (state_q[StTransfer] && !ends && !receiver_differs_i && !wants_window_i && gone_i && folded_i) ||
                          (started && immediate_i);
    state_d[StFail]     = ends || (state_q[StPlace] && past_i && !pick_o) || (state_q[StEval] && differs_i) ||
                          (state_q[StTransfer] && receiver_differs_i);
    state_d[StIdle]     = (state_q[StIdle] && !next_valid_i && !ends) || (turn_o && turned_q && !pick_o) ||
                          (state_q[StBegin] && thrown_i) || state_q[StAsk] || state_q[StWindow] ||
                          (started && !immediate_i) || state_q[StOver] || state_q[StFail];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= States'(1);
    else state_q <= state_d;
    began_q <= state_q[StBegin] && !thrown_i;
    if (pick_o) begin
      turned_q <= next_urgent_i;
      yields_q <= next_yields_i;
    end else if (state_q[StTurn]) begin
      turned_q <= 1'b1;
    end
  end

  assign look_o      = state_q[StLook2];
  assign begin_o     = state_q[StBegin];
  assign other_way_o = state_q[StTurn] && !ends;
  assign place_o     = state_q[StPlace];
  assign action_o    = state_q[StAction1];
  assign judged_o    = state_q[StEval];
  assign transfer_o  = state_q[StTransfer] && !ends;
  assign start_o     = state_q[StStart];

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) assert ($onehot(state_q) && $onehot(state_d)) else $error("%m: %b, then %b", state_q, state_d);
  end
`endif

endmodule
