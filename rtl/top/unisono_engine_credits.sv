// Credits of both directions: what peers have given, and what they are owed; and the messages that belong to no data:
// those that return credits to a peer to whom nothing else goes, those about puts and gets, and grants.
//
// Latency, throughput: see its parts.

// Not every output of a part is needed here.
// verilator lint_off PINCONNECTEMPTY

module unisono_engine_credits
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_core_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,

  // A communicator begins anew.
  input  logic          begins_valid_i,
  output logic          begins_ready_o,
  input  communicator_t begins_communicator_i,
  input  logic [15:0]   begins_buffers_i,

  // The core takes a credit of a peer, or gives one back that a call had taken and not used; it hears that there is one
  // again. A buffer is free again, so a peer is owed one.
  input  logic          credit_take_i,
  input  logic [15:0]   credit_keep_i,            // left to others
  output logic          credit_ready_o,
  input  member_t       credit_i,
  output logic          credit_answer_o, credit_granted_o,
  input  logic          credit_back_i,
  output logic          credit_back_ready_o,
  output logic          event_valid_o,
  input  logic          event_ready_i,
  output member_t       event_o,
  input  logic          owed_valid_i,
  output logic          owed_ready_o,
  input  member_t       owed_i,

  // Tx takes along what a peer is owed; Rx gives what a peer has returned.
  input  logic          take_valid_i,
  output logic          take_ready_o,
  input  member_t       take_i,
  output logic [15:0]   take_credits_o,
  input  logic          returned_valid_i,
  output logic          returned_ready_o,
  input  member_t       returned_i,
  input  logic [15:0]   returned_credits_i,

  // What a message needs: the communicator's entry, in the same cycle, and the peer's session, one later.
  output communicator_t       entry_communicator_o,
  input  communicator_entry_t entry_i,
  output member_t             peer_member_o,
  input  peer_entry_t         peer_i,

  // About puts and gets; grants; and all that goes out.
  input  logic          remote_valid_i,
  output logic          remote_ready_o,
  input  notice_t       remote_i,
  input  logic          grants_valid_i,
  output logic          grants_ready_o,
  input  transmit_t     grants_i,
  output logic          out_valid_o,
  input  logic          out_ready_i,
  output transmit_t     out_o,
  output logic          noticed_o                 // a message that is no grant goes out
);

  logic request_valid, request_ready, returned_ready, notice_valid, notice_ready;
  member_t request;
  transmit_t notice;

  // What a call had taken and not used comes back beside what peers return.
  assign credit_back_ready_o = returned_ready;
  assign returned_ready_o = returned_ready && !credit_back_i;

  unisono_credits u_credits (
    .clk_i, .rst_ni,
    .init_valid_i(begins_valid_i), .init_ready_o(begins_ready_o), .init_communicator_i(begins_communicator_i),
    .init_rx_buffers_i(begins_buffers_i),
    .freed_valid_i(owed_valid_i), .freed_ready_o(owed_ready_o), .freed_communicator_i(owed_i.communicator),
    .freed_peer_i(owed_i.peer),
    .owed_take_valid_i(take_valid_i), .owed_take_ready_o(take_ready_o), .owed_take_communicator_i(take_i.communicator),
    .owed_take_peer_i(take_i.peer), .owed_o(take_credits_o),
    .available_valid_i(credit_take_i), .available_ready_o(credit_ready_o),
    .available_communicator_i(credit_i.communicator), .available_peer_i(credit_i.peer), .available_take_i(1'b1),
    .available_keep_i(credit_keep_i),
    .available_valid_o(credit_answer_o), .available_granted_o(credit_granted_o), .available_count_o(),
    .returned_valid_i(returned_valid_i || credit_back_i), .returned_ready_o(returned_ready),
    .returned_communicator_i(credit_back_i ? credit_i.communicator : returned_i.communicator),
    .returned_peer_i(credit_back_i ? credit_i.peer : returned_i.peer),
    .returned_credits_i(credit_back_i ? 16'd1 : returned_credits_i),
    .request_valid_o(request_valid), .request_ready_i(request_ready),
    .request_communicator_o(request.communicator), .request_peer_o(request.peer),
    .event_valid_o, .event_ready_i, .event_communicator_o(event_o.communicator), .event_peer_o(event_o.peer),
    .excess_o()
  );

  unisono_credit_message u_credit_message (
    .clk_i, .rst_ni,
    .request_valid_i(request_valid), .request_ready_o(request_ready),
    .request_communicator_i(request.communicator), .request_peer_i(request.peer),
    .notice_valid_i(remote_valid_i), .notice_ready_o(remote_ready_o), .notice_i(remote_i),
    .entry_communicator_o, .entry_i, .peer_communicator_o(peer_member_o.communicator),
    .peer_rank_o(peer_member_o.peer), .peer_i,
    .out_valid_o(notice_valid), .out_ready_i(notice_ready), .out_transmit_o(notice)
  );
  assign noticed_o = notice_valid && notice_ready;

  unisono_engine_control u_control (
    .clk_i, .rst_ni, .grants_valid_i, .grants_ready_o, .grants_i,
    .notice_valid_i(notice_valid), .notice_ready_o(notice_ready), .notice_i(notice),
    .out_valid_o, .out_ready_i, .out_o
  );

endmodule
