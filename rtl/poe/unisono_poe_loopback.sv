// A POE whose only session, number 0, leads back to the engine: messages of a rank to itself.
//
// It is a sender and a receiver of frames, joined: space is promised, segments are checked, and
// control has a lane of its own, as in unisono_poe_frame. Reliable and ordered. A receiver that is
// full makes the sender wait, so nothing is lost.
//
// Latency: last word in to meta and first word out 11 cycles. Throughput: 1 word per cycle. After a
// reset ready outputs stay low for 4 cycles.

module unisono_poe_loopback #(
  parameter int unsigned DataBytes    = 64,
  // Words of the buffers, of which there are two in a row; powers of two.
  parameter int unsigned DataWords    = 256,
  parameter int unsigned ControlWords = 16,
  // Longest segments, in bytes.
  parameter int unsigned MaxPayload   = 8256,
  parameter int unsigned MaxControl   = 256
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  output unisono_poe_pkg::poe_capability_t capability_o,

  // Engine: may a segment of so many bytes be sent?
  input  logic                             query_valid_i,
  output logic                             query_ready_o,
  input  unisono_poe_pkg::session_t        query_session_i,
  input  unisono_poe_pkg::bytes_t          query_bytes_i,
  output logic                             grant_valid_o,
  input  logic                             grant_ready_i,
  output logic                             grant_granted_o,

  // Engine: segments to send.
  input  logic                             tx_meta_valid_i,
  output logic                             tx_meta_ready_o,
  input  unisono_poe_pkg::session_t        tx_meta_session_i,
  input  unisono_poe_pkg::bytes_t          tx_meta_bytes_i,
  input  logic                             tx_valid_i,
  output logic                             tx_ready_o,
  input  logic [DataBytes*8-1:0]           tx_data_i,
  input  logic [DataBytes-1:0]             tx_keep_i,
  input  logic                             tx_last_i,

  // Engine: segments received.
  output logic                             rx_meta_valid_o,
  input  logic                             rx_meta_ready_i,
  output unisono_poe_pkg::session_t        rx_meta_session_o,
  output unisono_poe_pkg::bytes_t          rx_meta_bytes_o,
  output logic                             rx_meta_error_o,
  output logic                             rx_valid_o,
  input  logic                             rx_ready_i,
  output logic [DataBytes*8-1:0]           rx_data_o,
  output logic [DataBytes-1:0]             rx_keep_o,
  output logic                             rx_last_o,

  // One cycle: a segment was dropped, for it was not granted, or is not what was announced.
  output logic                             dropped_o
);

  import unisono_poe_pkg::*;

  // The least that the sender's table of sessions can have; the second is never open.
  localparam int unsigned Sessions  = 2;
  localparam int unsigned SpaceBits = $clog2(DataWords + 1);

  assign capability_o = '{
    ordered:     1'b1,
    reliable:    1'b1,
    datagram:    1'b1,
    max_payload: bytes_t'(MaxPayload),
    max_control: bytes_t'(MaxControl)
  };
  assign rx_meta_error_o = 1'b0;

  logic                   lookup, asked, started;
  logic                   valid, ready, last, control;
  logic [DataBytes*8-1:0] data;
  logic [DataBytes-1:0]   keep;
  bytes_t                 bytes, sent_bytes, received_bytes;
  node_t                  node, source;
  logic                   sent, received, refused;
  logic [3:0]             tx_dropped, rx_dropped;

  unisono_poe_tx #(
    .DataBytes   (DataBytes),
    .Sessions    (Sessions),
    .DataWords   (DataWords),
    .ControlWords(ControlWords),
    .MaxPayload  (MaxPayload),
    .MaxControl  (MaxControl)
  ) u_tx (
    .clk_i,
    .rst_ni,
    .started_o      (started),
    .session_limit_i(SpaceBits'(DataWords)),
    .lookup_index_o (lookup),
    .lookup_open_i  (!lookup),
    .lookup_node_i  ('0),
    .query_index_o  (asked),
    .query_open_i   (!asked),
    .query_valid_i,
    .query_ready_o,
    .query_session_i,
    .query_bytes_i,
    .grant_valid_o,
    .grant_ready_i,
    .grant_granted_o,
    .meta_valid_i   (tx_meta_valid_i),
    .meta_ready_o   (tx_meta_ready_o),
    .meta_session_i (tx_meta_session_i),
    .meta_bytes_i   (tx_meta_bytes_i),
    .in_valid_i     (tx_valid_i),
    .in_ready_o     (tx_ready_o),
    .in_data_i      (tx_data_i),
    .in_keep_i      (tx_keep_i),
    .in_last_i      (tx_last_i),
    .mac_valid_o    (valid),
    .mac_ready_i    (ready),
    .mac_data_o     (data),
    .mac_keep_o     (keep),
    .mac_last_o     (last),
    .mac_dest_o     (node),
    .mac_bytes_o    (bytes),
    .mac_control_o  (control),
    .sent_o         (sent),
    .sent_bytes_o   (sent_bytes),
    .unknown_o      (tx_dropped[0]),
    .oversize_o     (tx_dropped[1]),
    .length_o       (tx_dropped[2]),
    .unreserved_o   (tx_dropped[3]),
    .refused_o      (refused)
  );

  unisono_poe_rx #(
    .DataBytes   (DataBytes),
    .Sessions    (Sessions),
    .DataWords   (DataWords),
    .ControlWords(ControlWords),
    .MaxPayload  (MaxPayload),
    .MaxControl  (MaxControl),
    .RxPause     (1'b1)
  ) u_rx (
    .clk_i,
    .rst_ni,
    .lookup_node_o   (source),
    .lookup_open_i   (1'b1),
    .lookup_index_i  (1'b0),
    .mac_valid_i     (valid),
    .mac_ready_o     (ready),
    .mac_data_i      (data),
    .mac_keep_i      (keep),
    .mac_last_i      (last),
    .mac_source_i    (node),
    .mac_bytes_i     (bytes),
    .mac_control_i   (control),
    .mac_error_i     (1'b0),
    .meta_valid_o    (rx_meta_valid_o),
    .meta_ready_i    (rx_meta_ready_i),
    .meta_session_o  (rx_meta_session_o),
    .meta_bytes_o    (rx_meta_bytes_o),
    .out_valid_o     (rx_valid_o),
    .out_ready_i     (rx_ready_i),
    .out_data_o      (rx_data_o),
    .out_keep_o      (rx_keep_o),
    .out_last_o      (rx_last_o),
    .received_o      (received),
    .received_bytes_o(received_bytes),
    .unknown_o       (rx_dropped[0]),
    .length_o        (rx_dropped[1]),
    .damaged_o       (rx_dropped[2]),
    .full_o          (rx_dropped[3])
  );

  assign dropped_o = |tx_dropped;

  logic unused;
  assign unused = ^{started, source, sent, sent_bytes, refused, received, received_bytes, rx_dropped};

`ifndef SYNTHESIS
  // What the sender let through is whole.
  always_ff @(posedge clk_i) begin
    if (rst_ni) assert (rx_dropped == '0) else $error("%m: a segment was lost on its way back");
  end
`endif

endmodule
