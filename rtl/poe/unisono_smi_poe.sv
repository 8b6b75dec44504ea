// The POE of cables: segments of the engine go to other nodes over SMI's transport, without a switch.
//
// unisono_poe_frame has the sessions, the space and the checks, as over the simulated network, and
// unisono_smi_mac carries its frames. Nothing is lost, doubled or overtaken, so the POE is ordered and
// reliable. A session's node is a rank of the routes. See docs/rtl/poe.md for the engine's side.
//
// One reset for both: who resets it takes the node out of the network. Routes are then loaded again, in
// all nodes, while the network is quiet.
//
// Latency: that of the two. Throughput: 248 of 256 bytes of a link's words are a frame's.

module unisono_smi_poe #(
  parameter int unsigned DataBytes       = 64,
  // Peers, and ranks of the routes; powers of two.
  parameter int unsigned Sessions        = 64,
  parameter int unsigned Nodes           = 64,
  // Longest segments, in bytes.
  parameter int unsigned MaxPayload      = 8256,
  parameter int unsigned MaxControl      = 256,
  // See unisono_smi_mac.
  parameter int unsigned Links           = 4,
  parameter int unsigned Words           = 4,
  parameter int unsigned VirtualChannels = 2,
  parameter int unsigned LinkDepth       = 128,
  localparam int unsigned Bits           = DataBytes * 8,
  localparam int unsigned Channels       = 2 * VirtualChannels,
  localparam int unsigned ChannelBits    = $clog2(Channels)
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

  // Engine: sessions that opened or closed.
  output logic                             event_valid_o,
  input  logic                             event_ready_i,
  output unisono_poe_pkg::session_t        event_session_o,
  output logic                             event_state_o,

  // Registers: one access at a time; it is done in the cycle in which reg_ready_o is high, and
  // reg_rdata_o is valid then.
  input  logic                             reg_valid_i,
  output logic                             reg_ready_o,
  input  logic                             reg_write_i,
  input  logic [15:0]                      reg_addr_i,
  input  logic [31:0]                      reg_wdata_i,
  output logic [31:0]                      reg_rdata_o,

  // An image of `unisono route`; see unisono_smi_loader.
  input  logic                              image_valid_i,
  output logic                              image_ready_o,
  input  logic [31:0]                       image_data_i,
  input  logic                              image_last_i,
  output logic                              running_o,
  output unisono_smi_pkg::image_e           image_o,

  // Cables; see unisono_smi_transport. Last is that of a packet.
  output logic [Links-1:0]                  link_valid_o,
  input  logic [Links-1:0]                  link_ready_i,
  output logic [Links-1:0][ChannelBits-1:0] link_channel_o,
  output logic [Links-1:0]                  link_last_o,
  output logic [Links-1:0][Bits-1:0]        link_data_o,
  input  logic [Links-1:0]                  link_up_i,
  input  logic [Links-1:0][Channels-1:0]    link_freed_i,
  input  logic [Links-1:0]                  link_valid_i,
  input  logic [Links-1:0][ChannelBits-1:0] link_channel_i,
  input  logic [Links-1:0]                  link_last_i,
  input  logic [Links-1:0][Bits-1:0]        link_data_i,
  output logic [Links-1:0]                  link_up_o,
  output logic [Links-1:0][Channels-1:0]    link_freed_o,

  // Packets for nobody, and frames that did not fit together.
  output logic [31:0]                       strays_o,
  output unisono_smi_pkg::stray_t           first_stray_o,
  output logic [31:0]                       dropped_o,

  // A word of a frame went to the transport, or came from it.
  output logic                              word_sent_o,
  output logic                              word_received_o
);

  logic                 tx_valid, tx_ready, tx_last, tx_control;
  logic                 rx_valid, rx_ready, rx_last, rx_control;
  logic [Bits-1:0]      tx_data, rx_data;
  logic [DataBytes-1:0] tx_keep, rx_keep;
  logic [15:0]          tx_dest, tx_bytes, rx_source, rx_bytes;

  unisono_poe_pkg::poe_capability_t capability;
  always_comb begin
    capability_o          = capability;
    capability_o.reliable = 1'b1;
  end

  // A full buffer makes the transport wait: what it brings cannot be had again.
  unisono_poe_frame #(
    .DataBytes (DataBytes),
    .Sessions  (Sessions),
    .Nodes     (Nodes),
    .MaxPayload(MaxPayload),
    .MaxControl(MaxControl),
    .RxPause   (1'b1)
  ) u_frame (
    .clk_i,
    .rst_ni,
    .capability_o     (capability),
    .query_valid_i,
    .query_ready_o,
    .query_session_i,
    .query_bytes_i,
    .grant_valid_o,
    .grant_ready_i,
    .grant_granted_o,
    .tx_meta_valid_i,
    .tx_meta_ready_o,
    .tx_meta_session_i,
    .tx_meta_bytes_i,
    .tx_valid_i,
    .tx_ready_o,
    .tx_data_i,
    .tx_keep_i,
    .tx_last_i,
    .rx_meta_valid_o,
    .rx_meta_ready_i,
    .rx_meta_session_o,
    .rx_meta_bytes_o,
    .rx_meta_error_o,
    .rx_valid_o,
    .rx_ready_i,
    .rx_data_o,
    .rx_keep_o,
    .rx_last_o,
    .event_valid_o,
    .event_ready_i,
    .event_session_o,
    .event_state_o,
    .reg_valid_i,
    .reg_ready_o,
    .reg_write_i,
    .reg_addr_i,
    .reg_wdata_i,
    .reg_rdata_o,
    .mac_tx_valid_o   (tx_valid),
    .mac_tx_ready_i   (tx_ready),
    .mac_tx_data_o    (tx_data),
    .mac_tx_keep_o    (tx_keep),
    .mac_tx_last_o    (tx_last),
    .mac_tx_dest_o    (tx_dest),
    .mac_tx_bytes_o   (tx_bytes),
    .mac_tx_control_o (tx_control),
    .mac_rx_valid_i   (rx_valid),
    .mac_rx_ready_o   (rx_ready),
    .mac_rx_data_i    (rx_data),
    .mac_rx_keep_i    (rx_keep),
    .mac_rx_last_i    (rx_last),
    .mac_rx_source_i  (rx_source),
    .mac_rx_bytes_i   (rx_bytes),
    .mac_rx_control_i (rx_control),
    .mac_rx_error_i   (1'b0)
  );
  logic unused_keep;
  assign unused_keep     = ^tx_keep;  // the length says it
  assign word_sent_o     = tx_valid && tx_ready;
  assign word_received_o = rx_valid && rx_ready;

  unisono_smi_mac #(
    .Links          (Links),
    .DataBytes      (DataBytes),
    .Words          (Words),
    .VirtualChannels(VirtualChannels),
    .Nodes          (Nodes),
    .MaxPayload     (MaxPayload),
    .MaxControl     (MaxControl),
    .LinkDepth      (LinkDepth)
  ) u_mac (
    .clk_i,
    .rst_ni,
    .image_valid_i,
    .image_ready_o,
    .image_data_i,
    .image_last_i,
    .running_o,
    .image_o,
    .mac_tx_valid_i  (tx_valid),
    .mac_tx_ready_o  (tx_ready),
    .mac_tx_data_i   (tx_data),
    .mac_tx_last_i   (tx_last),
    .mac_tx_dest_i   (tx_dest),
    .mac_tx_bytes_i  (tx_bytes),
    .mac_tx_control_i(tx_control),
    .mac_rx_valid_o  (rx_valid),
    .mac_rx_ready_i  (rx_ready),
    .mac_rx_data_o   (rx_data),
    .mac_rx_keep_o   (rx_keep),
    .mac_rx_last_o   (rx_last),
    .mac_rx_source_o (rx_source),
    .mac_rx_bytes_o  (rx_bytes),
    .mac_rx_control_o(rx_control),
    .link_valid_o,
    .link_ready_i,
    .link_channel_o,
    .link_last_o,
    .link_data_o,
    .link_up_i,
    .link_freed_i,
    .link_valid_i,
    .link_channel_i,
    .link_last_i,
    .link_data_i,
    .link_up_o,
    .link_freed_o,
    .strays_o,
    .first_stray_o,
    .dropped_o
  );

endmodule
