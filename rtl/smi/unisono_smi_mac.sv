// A MAC without a switch: frames go to other nodes over the cables of SMI's transport.
//
// unisono_smi_cut makes packets of frames, unisono_smi_transport carries them, unisono_smi_join makes
// frames of packets again, in order for each source. Data has the endpoints of port 0 for data, control
// those for control, and so virtual channels of its own. Image: made with --ports 1; a node's number is
// its rank. Ports mac_* fit unisono_poe_frame.
//
// All mac_* outputs come from registers: none depends on an input of the same cycle.
//
// Latency: from a frame's first word to the first packet on the wire 10 cycles, from a frame's last
// packet on the wire to the frame's first word 16. Throughput: 248 of 256 bytes of a packet are a
// frame's, at a packet's word per cycle.

module unisono_smi_mac #(
  parameter int unsigned Links           = 4,
  parameter int unsigned DataBytes       = 64,
  // Of a packet.
  parameter int unsigned Words           = 4,
  parameter int unsigned Burst           = 8,
  parameter int unsigned VirtualChannels = 2,
  // Ranks 0 to Nodes - 1; a power of two.
  parameter int unsigned Nodes           = 64,
  // Longest frames.
  parameter int unsigned MaxPayload      = 8256,
  parameter int unsigned MaxControl      = 256,
  // Places of a channel, in words; see unisono_smi_transport.
  parameter int unsigned Depth           = 32,
  parameter int unsigned LinkDepth       = 128,
  // Words of each source's rings, where its frames are put together.
  parameter int unsigned DataRing        = 256,
  parameter int unsigned ControlRing     = 32,
  localparam int unsigned Bits           = DataBytes * 8,
  localparam int unsigned Channels       = 2 * VirtualChannels,
  localparam int unsigned ChannelBits    = $clog2(Channels)
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  // An image of `unisono route`; see unisono_smi_loader.
  input  logic                              image_valid_i,
  output logic                              image_ready_o,
  input  logic [31:0]                       image_data_i,
  input  logic                              image_last_i,
  output logic                              running_o,
  output unisono_smi_pkg::image_e           image_o,

  // Frames to send; destination, length and kind are constant over one.
  input  logic                              mac_tx_valid_i,
  output logic                              mac_tx_ready_o,
  input  logic [DataBytes*8-1:0]            mac_tx_data_i,
  input  logic                              mac_tx_last_i,
  input  logic [15:0]                       mac_tx_dest_i,
  input  logic [15:0]                       mac_tx_bytes_i,
  input  logic                              mac_tx_control_i,

  // Frames received, whole.
  output logic                              mac_rx_valid_o,
  input  logic                              mac_rx_ready_i,
  output logic [DataBytes*8-1:0]            mac_rx_data_o,
  output logic [DataBytes-1:0]              mac_rx_keep_o,
  output logic                              mac_rx_last_o,
  output logic [15:0]                       mac_rx_source_o,
  output logic [15:0]                       mac_rx_bytes_o,
  output logic                              mac_rx_control_o,

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
  output logic [31:0]                       dropped_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned Kinds = 2;  // data, control
  localparam int unsigned Width = word_bits(DataBytes, Words);

  logic [RankBits-1:0] rank, ranks;
  logic                running, run_q;
  assign running_o = running;
  // Frames are of one network: a new image begins with none.
  always_ff @(posedge clk_i) begin
    run_q <= rst_ni && running;
  end
  logic unused_ranks;
  assign unused_ranks = ^ranks;

  logic [Kinds-1:0]            send_valid, send_ready, receive_valid, receive_ready;
  logic [Kinds-1:0][Width-1:0] send_data, receive_data;

  // ---- Frames to packets.
  logic             cut_ready, cut_valid, cut_control;
  logic [Width-1:0] cut_data;
  assign mac_tx_ready_o = cut_ready && run_q;

  unisono_smi_cut #(
    .DataBytes(DataBytes),
    .Words    (Words)
  ) u_cut (
    .clk_i,
    .rst_ni       (run_q),
    .rank_i       (rank),
    .in_valid_i   (mac_tx_valid_i && run_q),
    .in_ready_o   (cut_ready),
    .in_data_i    (mac_tx_data_i),
    .in_last_i    (mac_tx_last_i),
    .in_dest_i    (mac_tx_dest_i),
    .in_bytes_i   (mac_tx_bytes_i),
    .in_control_i (mac_tx_control_i),
    .out_valid_o  (cut_valid),
    .out_ready_i  (send_ready[cut_control]),
    .out_control_o(cut_control),
    .out_data_o   (cut_data)
  );
  assign send_valid = {cut_valid && cut_control, cut_valid && !cut_control};
  assign send_data  = {Kinds{cut_data}};

  logic [Links-1:0][Width-1:0] link_out, link_in;
  for (genvar k = 0; k < Links; k++) begin : gen_link
    assign {link_last_o[k], link_data_o[k]} = link_out[k];
    assign link_in[k]                       = {link_last_i[k], link_data_i[k]};
  end

  unisono_smi_transport #(
    .Links          (Links),
    .Ports          (1),
    .PacketBytes    (DataBytes),
    .Words          (Words),
    .Burst          (Burst),
    .VirtualChannels(VirtualChannels),
    .MaxRanks       (Nodes),
    .Depth          (Depth),
    .LinkDepth      (LinkDepth)
  ) u_transport (
    .clk_i,
    .rst_ni,
    .image_valid_i,
    .image_ready_o,
    .image_data_i,
    .image_last_i,
    .running_o      (running),
    .image_o,
    .rank_o         (rank),
    .ranks_o        (ranks),
    .send_valid_i   (send_valid),
    .send_ready_o   (send_ready),
    .send_data_i    (send_data),
    .receive_valid_o(receive_valid),
    .receive_ready_i(receive_ready),
    .receive_data_o (receive_data),
    .link_valid_o,
    .link_ready_i,
    .link_channel_o,
    .link_data_o    (link_out),
    .link_up_i,
    .link_freed_i,
    .link_valid_i,
    .link_channel_i,
    .link_data_i    (link_in),
    .link_up_o,
    .link_freed_o,
    .strays_o,
    .first_stray_o
  );

  // ---- Packets to frames.
  logic [Kinds-1:0]                  frame_valid, frame_ready, frame_last, dropped;
  logic [Kinds-1:0][DataBytes*8-1:0] frame_data;
  logic [Kinds-1:0][DataBytes-1:0]   frame_keep;
  logic [Kinds-1:0][31:0]            frame_user;

  for (genvar i = 0; i < Kinds; i++) begin : gen_kind
    unisono_smi_join #(
      .DataBytes(DataBytes),
      .Words    (Words),
      .Sources  (Nodes),
      .RingWords(i == 0 ? DataRing : ControlRing),
      .MaxBytes (i == 0 ? MaxPayload : MaxControl)
    ) u_join (
      .clk_i,
      .rst_ni      (run_q),
      .in_valid_i  (receive_valid[i]),
      .in_ready_o  (receive_ready[i]),
      .in_data_i   (receive_data[i]),
      .out_valid_o (frame_valid[i]),
      .out_ready_i (frame_ready[i]),
      .out_data_o  (frame_data[i]),
      .out_keep_o  (frame_keep[i]),
      .out_last_o  (frame_last[i]),
      .out_source_o(frame_user[i][15:0]),
      .out_bytes_o (frame_user[i][31:16]),
      .dropped_o   (dropped[i])
    );
  end

  unisono_poe_priority #(
    .DataBytes(DataBytes),
    .UserBits (32)
  ) u_priority (
    .clk_i,
    .rst_ni      (run_q),
    .in_valid_i  (frame_valid),
    .in_ready_o  (frame_ready),
    .in_data_i   (frame_data),
    .in_keep_i   (frame_keep),
    .in_last_i   (frame_last),
    .in_user_i   (frame_user),
    .out_valid_o (mac_rx_valid_o),
    .out_ready_i (mac_rx_ready_i),
    .out_data_o  (mac_rx_data_o),
    .out_keep_o  (mac_rx_keep_o),
    .out_last_o  (mac_rx_last_o),
    .out_user_o  ({mac_rx_bytes_o, mac_rx_source_o}),
    .out_source_o(mac_rx_control_o)
  );

  logic [31:0] dropped_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dropped_q <= '0;
    end else begin
      dropped_q <= dropped_q + 32'(dropped[0]) + 32'(dropped[1]);
    end
  end
  assign dropped_o = dropped_q;

endmodule
