// Tx, Rx and the credit unit with a wire as the transport.
//
// Every communicator c has number 32'hC0DE_0000 + c, epoch 16'h5A00 + c, 64 ranks, of which this is
// number 3; the session of rank r is {c, r}.

module unisono_txrx_loop
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned DataBytes = 64
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  output logic                        ready_o,

  input  logic      [1:0]             command_valid_i,
  output logic      [1:0]             command_ready_o,
  input  transmit_t [1:0]             command_transmit_i,
  input  logic [1:0]                  load_valid_i,
  output logic [1:0]                  load_ready_o,
  input  logic [1:0][DataBytes*8-1:0] load_data_i,
  input  logic [1:0][DataBytes-1:0]   load_keep_i,
  input  logic [1:0]                  load_last_i,
  input  logic                        control_valid_i,
  output logic                        control_ready_o,
  input  transmit_t                   control_transmit_i,

  output logic                        received_valid_o,
  input  logic                        received_ready_i,
  output received_t                   received_message_o,
  output logic                        payload_valid_o,
  input  logic                        payload_ready_i,
  output logic [DataBytes*8-1:0]      payload_data_o,
  output logic [DataBytes-1:0]        payload_keep_o,
  output logic                        payload_last_o,

  input  logic                        init_valid_i,
  output logic                        init_ready_o,
  input  communicator_t               init_communicator_i,
  input  logic [15:0]                 init_buffers_i,
  input  logic                        freed_valid_i,
  output logic                        freed_ready_o,
  input  communicator_t               freed_communicator_i,
  input  rank_t                       freed_peer_i,
  input  logic                        available_valid_i,
  output logic                        available_ready_o,
  input  communicator_t               available_communicator_i,
  input  rank_t                       available_peer_i,
  input  logic                        available_take_i,
  output logic                        answer_valid_o,
  output logic                        answer_granted_o,
  output logic [15:0]                 answer_count_o,
  output logic                        request_valid_o,
  input  logic                        request_ready_i,
  output communicator_t               request_communicator_o,
  output rank_t                       request_peer_o,

  output logic                        wrong_o,   // an error of Tx, an excess of credits
  output logic [31:0]                 good_o,
  output logic [9:1][31:0]            faults_o
);

  logic          take_valid, take_ready, meta_valid, meta_ready;
  communicator_t take_communicator, found_communicator, entry_communicator, peer_communicator;
  rank_t         take_peer, peer_rank;
  logic [15:0]   owed, meta_bytes, returned_credits;
  session_t      meta_session;
  logic          wire_valid, wire_ready, wire_last;
  logic [DataBytes*8-1:0] wire_data;
  logic [DataBytes-1:0]   wire_keep;
  logic          tx_error, excess;
  logic [1:0]    tx_error_source;
  logic          tx_error_long, control_payload_ready, session_ready;
  logic          returned_valid, returned_ready, event_valid;
  communicator_t returned_communicator, event_communicator;
  rank_t         returned_peer, event_peer;
  logic          find_valid, found, fault_valid;
  logic [31:0]   number, fault_communicator;
  logic [15:0]   epoch;
  communicator_entry_t entry;
  peer_entry_t   peer;
  fault_e        fault_code;
  session_t      fault_session;

  assign ready_o = take_ready;
  assign wrong_o = tx_error || excess || fault_valid;

  unisono_tx #(
    .DataBytes(DataBytes),
    .Sources  (2)
  ) u_tx (
    .clk_i,
    .rst_ni,
    .command_valid_i,
    .command_ready_o,
    .command_transmit_i,
    .payload_valid_i           (load_valid_i),
    .payload_ready_o           (load_ready_o),
    .payload_data_i            (load_data_i),
    .payload_keep_i            (load_keep_i),
    .payload_last_i            (load_last_i),
    .control_command_valid_i   (control_valid_i),
    .control_command_ready_o   (control_ready_o),
    .control_command_transmit_i(control_transmit_i),
    .control_payload_valid_i   (1'b0),
    .control_payload_ready_o   (control_payload_ready),
    .control_payload_data_i    ('0),
    .control_payload_keep_i    ('0),
    .control_payload_last_i    (1'b0),
    .owed_take_valid_o         (take_valid),
    .owed_take_ready_i         (take_ready),
    .owed_take_communicator_o  (take_communicator),
    .owed_take_peer_o          (take_peer),
    .owed_i                    (owed),
    .session_open_valid_i      (1'b0),
    .session_open_ready_o      (session_ready),
    .session_open_session_i    ('0),
    .meta_valid_o              (meta_valid),
    .meta_ready_i              (meta_ready),
    .meta_session_o            (meta_session),
    .meta_bytes_o              (meta_bytes),
    .tx_valid_o                (wire_valid),
    .tx_ready_i                (wire_ready),
    .tx_data_o                 (wire_data),
    .tx_keep_o                 (wire_keep),
    .tx_last_o                 (wire_last),
    .error_valid_o             (tx_error),
    .error_source_o            (tx_error_source),
    .error_long_o              (tx_error_long)
  );

  unisono_rx #(
    .DataBytes(DataBytes)
  ) u_rx (
    .clk_i,
    .rst_ni,
    .meta_valid_i           (meta_valid),
    .meta_ready_o           (meta_ready),
    .meta_session_i         (meta_session),
    .meta_bytes_i           (meta_bytes),
    .meta_error_i           (1'b0),
    .rx_valid_i             (wire_valid),
    .rx_ready_o             (wire_ready),
    .rx_data_i              (wire_data),
    .rx_keep_i              (wire_keep),
    .rx_last_i              (wire_last),
    .find_valid_o           (find_valid),
    .find_number_o          (number),
    .find_epoch_o           (epoch),
    .found_i                (found),
    .found_communicator_i   (found_communicator),
    .entry_communicator_o   (entry_communicator),
    .entry_i                (entry),
    .peer_communicator_o    (peer_communicator),
    .peer_rank_o            (peer_rank),
    .peer_i                 (peer),
    .received_valid_o,
    .received_ready_i,
    .received_message_o,
    .payload_valid_o,
    .payload_ready_i,
    .payload_data_o,
    .payload_keep_o,
    .payload_last_o,
    .returned_valid_o       (returned_valid),
    .returned_ready_i       (returned_ready),
    .returned_communicator_o(returned_communicator),
    .returned_peer_o        (returned_peer),
    .returned_credits_o     (returned_credits),
    .fault_valid_o          (fault_valid),
    .fault_ready_i          (1'b1),
    .fault_code_o           (fault_code),
    .fault_session_o        (fault_session),
    .fault_communicator_o   (fault_communicator),
    .counter_good_o         (good_o),
    .counter_fault_o        (faults_o)
  );

  unisono_credits u_credits (
    .clk_i,
    .rst_ni,
    .init_valid_i,
    .init_ready_o,
    .init_communicator_i,
    .init_rx_buffers_i       (init_buffers_i),
    .freed_valid_i,
    .freed_ready_o,
    .freed_communicator_i,
    .freed_peer_i,
    .owed_take_valid_i       (take_valid),
    .owed_take_ready_o       (take_ready),
    .owed_take_communicator_i(take_communicator),
    .owed_take_peer_i        (take_peer),
    .owed_o                  (owed),
    .available_valid_i,
    .available_ready_o,
    .available_communicator_i,
    .available_peer_i,
    .available_take_i,
    .available_keep_i        ('0),
    .available_valid_o       (answer_valid_o),
    .available_granted_o     (answer_granted_o),
    .available_count_o       (answer_count_o),
    .returned_valid_i        (returned_valid),
    .returned_ready_o        (returned_ready),
    .returned_communicator_i (returned_communicator),
    .returned_peer_i         (returned_peer),
    .returned_credits_i      (returned_credits),
    .request_valid_o,
    .request_ready_i,
    .request_communicator_o,
    .request_peer_o,
    .event_valid_o           (event_valid),
    .event_ready_i           (1'b1),
    .event_communicator_o    (event_communicator),
    .event_peer_o            (event_peer),
    .excess_o                (excess)
  );

  // The tables: two registers on the way to a communicator, one to a member.
  logic          hit_q;
  communicator_t index_q;

  always_ff @(posedge clk_i) begin
    hit_q   <= number[31:4] == 28'hC0D_E000 && epoch == {12'h5A0, number[3:0]};
    index_q <= number[3:0];
    found              <= hit_q;
    found_communicator <= index_q;
    peer    <= '{1'b1, session_t'({peer_communicator, peer_rank})};
  end

  always_comb begin
    entry               = '0;
    entry.segment_bytes = 32'd4096;
    entry.size          = 7'd64;
    entry.rank          = 6'd3;
  end

  logic unused;
  assign unused = ^{find_valid, entry_communicator, tx_error_source, tx_error_long, event_valid,
                    control_payload_ready, session_ready, event_communicator, event_peer,
                    fault_code, fault_session, fault_communicator};

endmodule
