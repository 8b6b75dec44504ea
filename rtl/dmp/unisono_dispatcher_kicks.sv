// Who kicks a move of the dispatcher, and which move is looked at next.
//
// A kick says that something may have changed for a move: a segment or a grant has come, its producer has made more, a
// kernel's stream has moved, it is its message's turn, or the look before has left something to do (*again*). Credit for a peer concerns the
// moves of all calls on its communicator that send to it: the slots are gone through in turn, one a cycle, and behind
// all other kicks. A grant kicks whichever move sends to its pair. Kicked moves stand in a unisono_kick_queue, each
// once.
//
// Latency: a kick that finds the queue empty is on offer 2 cycles later; again, a grant, and credit for a move of slot
// 0 after 3, of the slots behind it one more each. Throughput: one kick per cycle; a grant or a credit is taken when
// the one before has kicked. In this order they go first: again, grants, segments, producers, streams, turns, credit.
// Restrictions: nothing comes during the sweep after a reset.

module unisono_dispatcher_kicks
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // After a reset: nothing is kicked, and the place of this pair's number is taken out of the queue.
  input  logic  sweeps_i,
  input  pair_t sweep_pair_i,

  input  logic     again_valid_i,
  input  move_id_t again_id_i,

  input  logic     grant_valid_i,
  output logic     grant_ready_o,
  input  pair_t    grant_pair_i,

  input  logic     kick_valid_i,
  output logic     kick_ready_o,
  input  move_id_t kick_id_i,
  input  logic     follow_kick_valid_i,
  output logic     follow_kick_ready_o,
  input  move_id_t follow_kick_id_i,
  input  logic     stream_kick_valid_i,
  output logic     stream_kick_ready_o,
  input  move_id_t stream_kick_id_i,
  input  logic     turn_kick_valid_i,
  output logic     turn_kick_ready_o,
  input  move_id_t turn_kick_id_i,

  input  logic          credit_valid_i,
  output logic          credit_ready_o,
  input  communicator_t credit_communicator_i,
  input  rank_t         credit_peer_i,
  input  communicator_t [Calls-1:0] communicators_i,  // of each slot's call

  // Which move sends to a pair, if any, in the cycle of the question.
  output pair_t  pair_o,
  input  logic   sends_i,
  input  entry_t sender_i,

  // The next move to look at.
  output logic     next_valid_o,
  input  logic     next_take_i,
  output move_id_t next_id_o
);

  logic push_valid, again_q, grant_kick_q, scan_q, scan_moves;
  move_id_t push_id, again_id_q;
  pair_t grant_pair_q;
  slot_t scan_slot_q;
  communicator_t scan_communicator_q;
  rank_t scan_peer_q;

  assign grant_ready_o = !grant_kick_q && !sweeps_i;
  assign credit_ready_o = !scan_q;
  assign pair_o = grant_kick_q ? grant_pair_q : '{slot: scan_slot_q, peer: scan_peer_q};

  always_comb begin
    push_valid = 1'b0;
    push_id = '0;
    kick_ready_o = 1'b0;
    follow_kick_ready_o = 1'b0;
    stream_kick_ready_o = 1'b0;
    turn_kick_ready_o = 1'b0;
    scan_moves = 1'b0;
    if (sweeps_i) begin
      push_valid = 1'b0;
    end else if (again_q) begin
      push_valid = 1'b1;
      push_id = again_id_q;
    end else if (grant_kick_q) begin
      push_valid = sends_i;
      push_id = '{slot: pair_o.slot, entry: sender_i};
    end else if (kick_valid_i) begin
      push_valid = 1'b1;
      push_id = kick_id_i;
      kick_ready_o = 1'b1;
    end else if (follow_kick_valid_i) begin
      push_valid = 1'b1;
      push_id = follow_kick_id_i;
      follow_kick_ready_o = 1'b1;
    end else if (stream_kick_valid_i) begin
      push_valid = 1'b1;
      push_id = stream_kick_id_i;
      stream_kick_ready_o = 1'b1;
    end else if (turn_kick_valid_i) begin
      push_valid = 1'b1;
      push_id = turn_kick_id_i;
      turn_kick_ready_o = 1'b1;
    end else if (scan_q) begin
      scan_moves = 1'b1;
      push_valid = sends_i && communicators_i[scan_slot_q] == scan_communicator_q;
      push_id = '{slot: pair_o.slot, entry: sender_i};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      again_q <= 1'b0;
      again_id_q <= '0;
      scan_q <= 1'b0;
      scan_slot_q <= '0;
      scan_communicator_q <= '0;
      scan_peer_q <= '0;
      grant_kick_q <= 1'b0;
      grant_pair_q <= '0;
    end else begin
      again_q <= again_valid_i;
      again_id_q <= again_id_i;
      if (credit_valid_i && credit_ready_o) begin
        scan_q <= 1'b1;
        scan_slot_q <= '0;
        scan_communicator_q <= credit_communicator_i;
        scan_peer_q <= credit_peer_i;
      end else if (scan_moves) begin
        scan_slot_q <= scan_slot_q + 1'b1;
        if (scan_slot_q == slot_t'(Calls - 1)) scan_q <= 1'b0;
      end
      if (grant_valid_i && grant_ready_o) begin
        grant_kick_q <= 1'b1;
        grant_pair_q <= grant_pair_i;
      end else if (grant_kick_q && !again_q) begin
        grant_kick_q <= 1'b0;
      end
    end
  end

  unisono_kick_queue #(.Depth(Calls * Window)) u_queue (
    .clk_i, .rst_ni, .kick_valid_i(push_valid), .kick_place_i(push_id), .next_valid_o, .next_take_i,
    .next_place_o(next_id_o), .sweep_valid_i(sweeps_i),
    .sweep_place_i({sweep_pair_i.slot, entry_t'(sweep_pair_i.peer)})
  );

endmodule
