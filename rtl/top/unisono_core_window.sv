// The windows: moves from their entering to their retiring. The scoreboard holds a move back until what it depends on
// is done; those that follow others by segments hear of each; and point to point, the messages of a pair are announced
// in the order in which the moves of their calls came.
//
// Latency, throughput: see its parts.

// Not every output of a part is needed here.
// verilator lint_off PINCONNECTEMPTY

module unisono_core_window
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_core_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             clear_valid_i,
  input  slot_t            clear_slot_i,
  input  logic [Calls-1:0] clearing_i,
  // Of these other fields count elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  call_context_t    contexts_i [Calls],

  // Moves come, and the end of a program; all moves of one are complete.
  input  logic             push_valid_i,
  output logic             push_ready_o,
  input  entering_t        push_i,
  // verilator lint_on UNUSEDSIGNAL
  output move_id_t         push_id_o,
  input  logic             close_valid_i,
  input  slot_t            close_slot_i,
  output logic             finished_valid_o,
  output slot_t            finished_slot_o,
  output rooms_t           room_o,
  output logic [Calls-1:0][GenerationWidth-1:0] generations_o,
  output cause_t           cause_o,

  // A move issues.
  output logic             issue_valid_o,
  input  logic             issue_ready_i,
  output move_of_t         issue_o,

  // How far moves are. The receive-buffer manager says when the next arrival of a pair may issue; that waits while the
  // dispatcher does.
  input  logic             turn_valid_i,
  input  move_of_t         turn_i,
  input  logic             consumed_valid_i, sent_valid_i,
  input  move_of_t         event_i,
  input  logic             complete_valid_i,
  input  move_of_t         complete_i,
  output logic             retired_valid_o,
  output move_id_t         retired_id_o,

  // What is made of a result; of a get, all at once.
  input  logic             made_valid_i, made_all_i,
  input  move_of_t         made_i,
  input  segment_bytes_t   made_bytes_i,
  input  move_id_t         follow_id_i,
  output logic             follow_free_o, follow_limited_o,
  output message_bytes_t   follow_limit_o,
  input  logic             follow_waits_i,
  output logic             follow_kick_valid_o,
  input  logic             follow_kick_ready_i,
  output move_id_t         follow_kick_id_o,

  // Point to point: a move has come; whether the message of a slot waits for its turn, and whose turn it is now.
  output logic             partner_valid_o,
  output partner_t         partner_o,
  input  logic             announced_i,
  input  slot_t            held_slot_i,
  output logic             held_o,
  output logic             turn_kick_valid_o,
  input  logic             turn_kick_ready_i,
  output move_id_t         turn_kick_id_o
);

  logic entered, turn_valid;
  move_of_t turn;
  entry_t push_entry;
  logic [31:0] streams;

  // A move that follows another one by segments may issue when that one has.
  always_comb begin
    streams = '0;
    if (push_i.move.segment_dependency0 != '0) streams[push_i.move.segment_dependency0[4:0] - 5'd1] = 1'b1;
    if (push_i.move.segment_dependency1 != '0) streams[push_i.move.segment_dependency1[4:0] - 5'd1] = 1'b1;
  end
  assign push_id_o = '{slot: push_i.slot, entry: push_entry};
  assign entered = push_valid_i && push_ready_o;

  // Of the move's context, and of a window's error, other fields count elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  move_id_t error_id;
  call_context_t context_now;
  // verilator lint_on UNUSEDSIGNAL
  assign cause_o.slot = error_id.slot;
  assign cause_o.code = ErrorCodeMalformedProgram;
  unisono_scoreboard u_scoreboard (
    .clk_i, .rst_ni,
    .push_valid_i, .push_ready_o, .push_slot_i(push_i.slot), .push_dependencies_i(push_i.move.dependencies),
    .push_streams_i(streams), .push_distance_i(push_i.distance), .push_receives_i(push_i.receives),
    .push_sends_i(push_i.sends), .push_trivial_i(push_i.trivial), .push_entry_o(push_entry),
    .error_valid_o(cause_o.valid), .error_id_o(error_id),
    .issue_valid_o, .issue_ready_i, .issue_id_o(issue_o.id), .issue_generation_o(issue_o.generation),
    .consumed_valid_i(turn_valid || consumed_valid_i), .consumed_id_i(consumed_valid_i ? event_i.id : turn.id),
    .consumed_generation_i(consumed_valid_i ? event_i.generation : turn.generation),
    .sent_valid_i, .sent_id_i(event_i.id), .sent_generation_i(event_i.generation),
    .complete_valid_i, .complete_id_i(complete_i.id), .complete_generation_i(complete_i.generation),
    .retired_valid_o, .retired_id_o, .close_valid_i, .close_slot_i,
    .finished_valid_o, .finished_ready_i(1'b1), .finished_slot_o, .clear_valid_i, .clear_slot_i,
    .room_o, .empty_o(), .generation_o(generations_o)
  );

  unisono_fifo #(.Width($bits(move_of_t)), .Depth(8)) u_turns (
    .clk_i, .rst_ni, .in_valid_i(turn_valid_i), .in_ready_o(), .in_data_i(turn_i),
    .out_valid_o(turn_valid), .out_ready_i(!consumed_valid_i), .out_data_o(turn), .count_o()
  );

  unisono_producers u_producers (
    .clk_i, .rst_ni, .clear_valid_i, .clear_slot_i,
    .push_valid_i(entered), .push_id_i(push_id_o), .push_generation_i(generations_o[push_i.slot]),
    .push_distance0_i(push_i.move.segment_dependency0[4:0]), .push_distance1_i(push_i.move.segment_dependency1[4:0]),
    .end_valid_i(made_valid_i), .end_id_i(made_i.id), .end_generation_i(made_i.generation),
    .end_bytes_i(made_bytes_i), .end_all_i(made_all_i),
    .ask_id_i(follow_id_i), .free_o(follow_free_o), .limit_o(follow_limit_o), .limited_o(follow_limited_o),
    .wait_valid_i(follow_waits_i), .wait_id_i(event_i.id),
    .kick_valid_o(follow_kick_valid_o), .kick_ready_i(follow_kick_ready_i), .kick_id_o(follow_kick_id_o)
  );

  assign context_now = contexts_i[push_i.slot];
  assign partner_valid_o = entered && !push_i.trivial && context_now.point_to_point;
  assign partner_o = '{
    slot: push_i.slot,
    sends: push_i.move.remote.kind == RemoteKindMessage,
    peer: push_i.move.remote.kind == RemoteKindMessage ? rank_t'(push_i.move.remote.peer)
                                                       : rank_t'(push_i.move.arrival.peer)
  };
  unisono_send_turns u_sends (
    .clk_i, .rst_ni,
    .add_valid_i(partner_valid_o && partner_o.sends), .add_id_i(push_id_o),
    .add_communicator_i(context_now.communicator), .add_peer_i(partner_o.peer),
    .announced_valid_i(announced_i), .announced_slot_i(event_i.id.slot), .clear_i(clear_valid_i ? clearing_i : '0),
    .slot_i(held_slot_i), .held_o, .kick_valid_o(turn_kick_valid_o), .kick_ready_i(turn_kick_ready_i),
    .kick_id_o(turn_kick_id_o)
  );

endmodule
