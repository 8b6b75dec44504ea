// From lanes and control messages to the transport, and back: Tx, Rx, the question for space, and the transport of this
// engine's own, which leads back, beside the one that is attached. Session SelfSession leads back to this engine, those
// below it to the transport outside.
//
// Latency, throughput: see its parts.

// Not every output of a part is needed here.
// verilator lint_off PINCONNECTEMPTY

module unisono_engine_wire
  import unisono_spec_pkg::SelfSession;
  import unisono_cclo_pkg::*;
  import unisono_core_pkg::*;
#(
  parameter int unsigned DataBytes = 64
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Space for data; and control messages, which wait for theirs here.
  input  logic                   space_valid_i,
  output logic                   space_ready_o,
  input  question_t              space_i,
  output logic                   space_answer_o, space_granted_o,
  input  logic                   control_valid_i,
  output logic                   control_ready_o,
  input  transmit_t              control_i,

  // Data of two lanes. Tx refused words of this slot.
  input  logic [1:0]             transmit_valid_i,
  output logic [1:0]             transmit_ready_o,
  input  transmit_t [1:0]        transmit_i,
  input  logic [1:0]             send_valid_i, send_last_i,
  output logic [1:0]             send_ready_o,
  input  logic [1:0][DataBytes*8-1:0] send_data_i,
  input  logic [1:0][DataBytes-1:0]   send_keep_i,
  input  slot_t [1:0]            send_slot_i,
  output logic                   send_error_valid_o,
  output slot_t                  send_error_slot_o,

  // Credits that go along, and that have come.
  output logic                   owed_take_valid_o,
  input  logic                   owed_take_ready_i,
  output member_t                owed_take_o,
  input  logic [15:0]            owed_credits_i,
  output logic                   returned_valid_o,
  input  logic                   returned_ready_i,
  output member_t                returned_o,
  output logic [15:0]            returned_credits_o,

  // What Rx asks of communicators and members.
  output logic                   find_valid_o,
  output logic [31:0]            find_number_o,
  output logic [15:0]            find_epoch_o,
  input  logic                   found_i,
  input  communicator_t          found_communicator_i,
  output communicator_t          entry_communicator_o,
  input  communicator_entry_t    entry_i,
  output member_t                member_o,
  input  peer_entry_t            peer_i,

  // What has come, and what was refused.
  output logic                   received_valid_o,
  input  logic                   received_ready_i,
  output received_t              received_o,
  output logic                   payload_valid_o, payload_last_o,
  input  logic                   payload_ready_i,
  output logic [DataBytes*8-1:0] payload_data_o,
  output logic [DataBytes-1:0]   payload_keep_o,
  output logic                   fault_valid_o,
  output fault_e                 fault_code_o,

  // The transport that is attached.
  input  unisono_poe_pkg::poe_capability_t poe_capability_i,
  output logic                             poe_query_valid_o,
  input  logic                             poe_query_ready_i,
  output unisono_poe_pkg::session_t        poe_query_session_o,
  output unisono_poe_pkg::bytes_t          poe_query_bytes_o,
  input  logic                             poe_grant_valid_i,
  output logic                             poe_grant_ready_o,
  input  logic                             poe_grant_granted_i,
  output logic                             poe_tx_meta_valid_o,
  input  logic                             poe_tx_meta_ready_i,
  output unisono_poe_pkg::session_t        poe_tx_meta_session_o,
  output unisono_poe_pkg::bytes_t          poe_tx_meta_bytes_o,
  output logic                             poe_tx_valid_o, poe_tx_last_o,
  input  logic                             poe_tx_ready_i,
  output logic [DataBytes*8-1:0]           poe_tx_data_o,
  output logic [DataBytes-1:0]             poe_tx_keep_o,
  input  logic                             poe_rx_meta_valid_i, poe_rx_meta_error_i,
  output logic                             poe_rx_meta_ready_o,
  input  unisono_poe_pkg::session_t        poe_rx_meta_session_i,
  input  unisono_poe_pkg::bytes_t          poe_rx_meta_bytes_i,
  input  logic                             poe_rx_valid_i, poe_rx_last_i,
  output logic                             poe_rx_ready_o,
  input  logic [DataBytes*8-1:0]           poe_rx_data_i,
  input  logic [DataBytes-1:0]             poe_rx_keep_i,
  input  logic                             poe_event_valid_i, poe_event_state_i,
  output logic                             poe_event_ready_o,
  input  unisono_poe_pkg::session_t        poe_event_session_i,

  output wire_events_t           events_o
);

  logic gate_valid, gate_ready, query_valid, query_ready, grant_valid, grant_ready, grant_granted;
  transmit_t gate;
  unisono_poe_pkg::session_t query_session, meta_session, rx_meta_session;
  unisono_poe_pkg::bytes_t query_bytes;
  unisono_space_gate u_space_gate (
    .clk_i, .rst_ni,
    .space_valid_i, .space_ready_o, .space_session_i(space_i.session), .space_bytes_i(space_i.bytes),
    .space_answer_o, .space_granted_o,
    .in_valid_i(control_valid_i), .in_ready_o(control_ready_o), .in_transmit_i(control_i),
    .out_valid_o(gate_valid), .out_ready_i(gate_ready), .out_transmit_o(gate),
    .query_valid_o(query_valid), .query_ready_i(query_ready), .query_session_o(query_session),
    .query_bytes_o(query_bytes), .grant_valid_i(grant_valid), .grant_ready_o(grant_ready),
    .grant_granted_i(grant_granted)
  );

  logic meta_valid, meta_ready, tx_valid, tx_ready, tx_last;
  logic [15:0] meta_bytes, rx_meta_bytes;
  logic [DataBytes*8-1:0] tx_data, rx_data;
  logic [DataBytes-1:0] tx_keep, rx_keep;
  logic rx_meta_valid, rx_meta_ready, rx_meta_error, rx_valid, rx_ready, rx_last;
  // Of two sources the low bit counts.
  // verilator lint_off UNUSEDSIGNAL
  logic [1:0] error_source;
  // verilator lint_on UNUSEDSIGNAL

  unisono_tx #(.DataBytes(DataBytes), .Sources(2)) u_tx (
    .clk_i, .rst_ni,
    .command_valid_i(transmit_valid_i), .command_ready_o(transmit_ready_o), .command_transmit_i(transmit_i),
    .payload_valid_i(send_valid_i), .payload_ready_o(send_ready_o), .payload_data_i(send_data_i),
    .payload_keep_i(send_keep_i), .payload_last_i(send_last_i),
    .control_command_valid_i(gate_valid), .control_command_ready_o(gate_ready),
    .control_command_transmit_i(gate),
    .control_payload_valid_i(1'b0), .control_payload_ready_o(), .control_payload_data_i('0),
    .control_payload_keep_i('0), .control_payload_last_i(1'b0),
    .owed_take_valid_o, .owed_take_ready_i, .owed_take_communicator_o(owed_take_o.communicator),
    .owed_take_peer_o(owed_take_o.peer), .owed_i(owed_credits_i),
    .session_open_valid_i(1'b0), .session_open_ready_o(), .session_open_session_i('0),
    .meta_valid_o(meta_valid), .meta_ready_i(meta_ready), .meta_session_o(meta_session),
    .meta_bytes_o(meta_bytes),
    .tx_valid_o(tx_valid), .tx_ready_i(tx_ready), .tx_data_o(tx_data), .tx_keep_o(tx_keep),
    .tx_last_o(tx_last),
    .error_valid_o(send_error_valid_o), .error_source_o(error_source), .error_long_o()
  );

  // Tx tells of a word that was wrong one cycle after it.
  slot_t [1:0] send_slot_q;
  always_ff @(posedge clk_i) begin
    for (int l = 0; l < 2; l++) if (send_valid_i[l] && send_ready_o[l]) send_slot_q[l] <= send_slot_i[l];
  end
  assign send_error_slot_o = send_slot_q[error_source[0]];

  unisono_rx #(.DataBytes(DataBytes)) u_rx (
    .clk_i, .rst_ni,
    .meta_valid_i(rx_meta_valid), .meta_ready_o(rx_meta_ready), .meta_session_i(rx_meta_session),
    .meta_bytes_i(rx_meta_bytes), .meta_error_i(rx_meta_error),
    .rx_valid_i(rx_valid), .rx_ready_o(rx_ready), .rx_data_i(rx_data), .rx_keep_i(rx_keep),
    .rx_last_i(rx_last),
    .find_valid_o, .find_number_o, .find_epoch_o, .found_i, .found_communicator_i,
    .entry_communicator_o, .entry_i, .peer_communicator_o(member_o.communicator), .peer_rank_o(member_o.peer), .peer_i,
    .received_valid_o, .received_ready_i, .received_message_o(received_o),
    .payload_valid_o, .payload_ready_i, .payload_data_o, .payload_keep_o, .payload_last_o,
    .returned_valid_o, .returned_ready_i, .returned_communicator_o(returned_o.communicator),
    .returned_peer_o(returned_o.peer), .returned_credits_o,
    .fault_valid_o, .fault_ready_i(1'b1), .fault_code_o, .fault_session_o(), .fault_communicator_o(),
    .counter_good_o(), .counter_fault_o()
  );

  // ------------------------------------------------------------------------------------- two transports

  logic own_query_valid, own_query_ready, own_grant_valid, own_grant_ready, own_grant_granted;
  logic own_meta_valid, own_meta_ready, own_tx_valid, own_tx_ready, own_tx_last;
  logic own_rx_meta_valid, own_rx_meta_ready, own_rx_meta_error, own_rx_valid, own_rx_ready, own_rx_last;
  unisono_poe_pkg::session_t own_query_session, own_meta_session, own_rx_meta_session;
  unisono_poe_pkg::bytes_t own_query_bytes, own_meta_bytes, own_rx_meta_bytes;
  logic [DataBytes*8-1:0] own_tx_data, own_rx_data;
  logic [DataBytes-1:0] own_tx_keep, own_rx_keep;
  unisono_poe_pkg::poe_capability_t own_capability;
  logic unused_event_ready;

  unisono_poe_mux #(.DataBytes(DataBytes)) u_poe_mux (
    .clk_i, .rst_ni,
    .split_i(SelfSession[unisono_poe_pkg::ControlBit-1:0]),
    .poe_capability_i({own_capability, poe_capability_i}), .capability_o(),
    .query_valid_i(query_valid), .query_ready_o(query_ready), .query_session_i(query_session),
    .query_bytes_i(query_bytes), .grant_valid_o(grant_valid), .grant_ready_i(grant_ready),
    .grant_granted_o(grant_granted),
    .tx_meta_valid_i(meta_valid), .tx_meta_ready_o(meta_ready), .tx_meta_session_i(meta_session),
    .tx_meta_bytes_i(meta_bytes), .tx_valid_i(tx_valid), .tx_ready_o(tx_ready), .tx_data_i(tx_data),
    .tx_keep_i(tx_keep), .tx_last_i(tx_last),
    .rx_meta_valid_o(rx_meta_valid), .rx_meta_ready_i(rx_meta_ready), .rx_meta_session_o(rx_meta_session),
    .rx_meta_bytes_o(rx_meta_bytes), .rx_meta_error_o(rx_meta_error), .rx_valid_o(rx_valid),
    .rx_ready_i(rx_ready), .rx_data_o(rx_data), .rx_keep_o(rx_keep), .rx_last_o(rx_last),
    .event_valid_o(), .event_ready_i(1'b1), .event_session_o(), .event_state_o(),
    .poe_query_valid_o({own_query_valid, poe_query_valid_o}), .poe_query_ready_i({own_query_ready, poe_query_ready_i}),
    .poe_query_session_o({own_query_session, poe_query_session_o}),
    .poe_query_bytes_o({own_query_bytes, poe_query_bytes_o}),
    .poe_grant_valid_i({own_grant_valid, poe_grant_valid_i}), .poe_grant_ready_o({own_grant_ready, poe_grant_ready_o}),
    .poe_grant_granted_i({own_grant_granted, poe_grant_granted_i}),
    .poe_tx_meta_valid_o({own_meta_valid, poe_tx_meta_valid_o}),
    .poe_tx_meta_ready_i({own_meta_ready, poe_tx_meta_ready_i}),
    .poe_tx_meta_session_o({own_meta_session, poe_tx_meta_session_o}),
    .poe_tx_meta_bytes_o({own_meta_bytes, poe_tx_meta_bytes_o}),
    .poe_tx_valid_o({own_tx_valid, poe_tx_valid_o}), .poe_tx_ready_i({own_tx_ready, poe_tx_ready_i}),
    .poe_tx_data_o({own_tx_data, poe_tx_data_o}), .poe_tx_keep_o({own_tx_keep, poe_tx_keep_o}),
    .poe_tx_last_o({own_tx_last, poe_tx_last_o}),
    .poe_rx_meta_valid_i({own_rx_meta_valid, poe_rx_meta_valid_i}),
    .poe_rx_meta_ready_o({own_rx_meta_ready, poe_rx_meta_ready_o}),
    .poe_rx_meta_session_i({own_rx_meta_session, poe_rx_meta_session_i}),
    .poe_rx_meta_bytes_i({own_rx_meta_bytes, poe_rx_meta_bytes_i}),
    .poe_rx_meta_error_i({own_rx_meta_error, poe_rx_meta_error_i}),
    .poe_rx_valid_i({own_rx_valid, poe_rx_valid_i}), .poe_rx_ready_o({own_rx_ready, poe_rx_ready_o}),
    .poe_rx_data_i({own_rx_data, poe_rx_data_i}), .poe_rx_keep_i({own_rx_keep, poe_rx_keep_i}),
    .poe_rx_last_i({own_rx_last, poe_rx_last_i}),
    .poe_event_valid_i({1'b0, poe_event_valid_i}), .poe_event_ready_o({unused_event_ready, poe_event_ready_o}),
    .poe_event_session_i({unisono_poe_pkg::session_t'(0), poe_event_session_i}),
    .poe_event_state_i({1'b0, poe_event_state_i})
  );

  unisono_poe_loopback #(.DataBytes(DataBytes)) u_loopback (
    .clk_i, .rst_ni,
    .capability_o(own_capability),
    .query_valid_i(own_query_valid), .query_ready_o(own_query_ready), .query_session_i(own_query_session),
    .query_bytes_i(own_query_bytes), .grant_valid_o(own_grant_valid), .grant_ready_i(own_grant_ready),
    .grant_granted_o(own_grant_granted),
    .tx_meta_valid_i(own_meta_valid), .tx_meta_ready_o(own_meta_ready), .tx_meta_session_i(own_meta_session),
    .tx_meta_bytes_i(own_meta_bytes), .tx_valid_i(own_tx_valid), .tx_ready_o(own_tx_ready), .tx_data_i(own_tx_data),
    .tx_keep_i(own_tx_keep), .tx_last_i(own_tx_last),
    .rx_meta_valid_o(own_rx_meta_valid), .rx_meta_ready_i(own_rx_meta_ready),
    .rx_meta_session_o(own_rx_meta_session), .rx_meta_bytes_o(own_rx_meta_bytes),
    .rx_meta_error_o(own_rx_meta_error), .rx_valid_o(own_rx_valid), .rx_ready_i(own_rx_ready),
    .rx_data_o(own_rx_data), .rx_keep_o(own_rx_keep), .rx_last_o(own_rx_last),
    .dropped_o()
  );

  // ------------------------------------------------------------------------------------------- counters

  // Messages with payload that Tx has begun and whose last word no lane has given yet.
  logic [1:0] begun;
  for (genvar l = 0; l < 2; l++) begin : gen_begun
    logic begins, finishes;
    logic [3:0] count_q;
    assign begins = transmit_valid_i[l] && transmit_ready_o[l] && transmit_i[l].header.segment_bytes != '0;
    assign finishes = send_valid_i[l] && send_ready_o[l] && send_last_i[l];
    assign begun[l] = count_q != '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) count_q <= '0;
      else count_q <= count_q + 4'(begins) - 4'(finishes);
    end
  end

  assign events_o = '{
    tx_word: tx_valid && tx_ready,
    rx_word: rx_valid && rx_ready,
    stalls_data: begun != '0 && send_valid_i == '0,
    stalls_network: (tx_valid && !tx_ready) || (meta_valid && !meta_ready)
  };

endmodule
