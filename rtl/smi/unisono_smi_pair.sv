// The communication kernels of one link: CKS, CKR, and the sending end of the cable.
//
// Between CKS and CKR, and to those of the node's other links, packets go without a register; every
// receiver has queues. peer_* arrays are indexed by link; their own place is not used.

module unisono_smi_pair #(
  parameter int unsigned Links           = 4,
  parameter int unsigned Link            = 0,
  parameter int unsigned Endpoints       = 1,
  parameter int unsigned PacketBytes     = 32,
  // Most words of a packet.
  parameter int unsigned Words           = 1,
  parameter int unsigned VirtualChannels = 1,
  parameter int unsigned MaxRanks        = 128,
  parameter int unsigned MaxPorts        = 16,
  parameter int unsigned Burst           = 8,
  parameter int unsigned Depth           = 16,
  parameter int unsigned LinkDepth       = 16,
  localparam int unsigned Width          = unisono_smi_pkg::word_bits(PacketBytes, Words),
  localparam int unsigned Channels       = 2 * VirtualChannels,
  localparam int unsigned ChannelBits    = $clog2(Channels),
  localparam int unsigned SendBits       = $clog2(VirtualChannels * MaxRanks),
  localparam int unsigned ReceiveBits    = $clog2(2 * MaxPorts),
  localparam int unsigned Ends           = Endpoints > 0 ? Endpoints : 1
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  // Tables, as unisono_smi_loader writes them.
  input  logic                              cks_wr_en_i,
  input  logic [SendBits-1:0]               cks_wr_address_i,
  input  logic                              ckr_wr_en_i,
  input  logic [ReceiveBits-1:0]            ckr_wr_address_i,
  input  logic [6:0]                        wr_entry_i,
  input  logic [unisono_smi_pkg::RankBits-1:0] ranks_i,
  input  logic [unisono_smi_pkg::RankBits-1:0] rank_i,
  input  logic [unisono_smi_pkg::PortBits-1:0] ports_i,

  // From and to the other CKS of the node.
  input  logic [Links-1:0]                  cks_valid_i,
  input  logic [Links-1:0][ChannelBits-1:0] cks_channel_i,
  input  logic [Links-1:0][Width-1:0]       cks_data_i,
  output logic [Links-1:0][Channels-1:0]    cks_room_o,
  output logic [Links-1:0]                  cks_valid_o,
  output logic [ChannelBits-1:0]            cks_channel_o,
  output logic [Width-1:0]                  cks_data_o,
  input  logic [Links-1:0][Channels-1:0]    cks_room_i,

  // From and to the other CKR of the node.
  input  logic [Links-1:0]                  ckr_valid_i,
  input  logic [Links-1:0][ChannelBits-1:0] ckr_channel_i,
  input  logic [Links-1:0][Width-1:0]       ckr_data_i,
  output logic [Links-1:0][Channels-1:0]    ckr_room_o,
  output logic [Links-1:0]                  ckr_valid_o,
  output logic [ChannelBits-1:0]            ckr_channel_o,
  output logic [Width-1:0]                  ckr_data_o,
  input  logic [Links-1:0][Channels-1:0]    ckr_room_i,

  // Endpoints that send, and those that receive (their packet is in ckr_data_o).
  input  logic [Ends-1:0]                   send_valid_i,
  output logic [Ends-1:0]                   send_ready_o,
  input  logic [Ends-1:0][Width-1:0]        send_data_i,
  output logic [Ends-1:0]                   receive_valid_o,
  input  logic [Ends-1:0]                   receive_room_i,

  // The cable.
  output logic                              link_valid_o,
  input  logic                              link_ready_i,
  output logic [ChannelBits-1:0]            link_channel_o,
  output logic [Width-1:0]                  link_data_o,
  input  logic                              link_up_i,
  input  logic [Channels-1:0]               link_freed_i,
  input  logic                              link_valid_i,
  input  logic [ChannelBits-1:0]            link_channel_i,
  input  logic [Width-1:0]                  link_data_i,
  output logic [Channels-1:0]               link_freed_o,

  // The packet in cks_data_o, in ckr_data_o, is stray.
  output logic                              cks_stray_o,
  output logic                              ckr_stray_o
);

  logic [Links-1:0]                  to_cks_valid, to_ckr_valid;
  logic [Links-1:0][ChannelBits-1:0] to_cks_channel, to_ckr_channel;
  logic [Links-1:0][Width-1:0]       to_cks_data, to_ckr_data;
  logic [Links-1:0][Channels-1:0]    to_cks_room, to_ckr_room;
  logic [Links:0]                    from_cks_valid;
  logic [Links:0][Channels-1:0]      from_cks_room;
  logic [Links-1:0]                  from_ckr_valid;
  logic [Links-1:0][Channels-1:0]    from_ckr_room;
  logic [Channels-1:0]               link_room;

  // In the place of this link each kernel has the other one.
  always_comb begin
    to_cks_valid         = cks_valid_i;
    to_cks_channel       = cks_channel_i;
    to_cks_data          = cks_data_i;
    to_cks_valid[Link]   = from_ckr_valid[Link];
    to_cks_channel[Link] = ckr_channel_o;
    to_cks_data[Link]    = ckr_data_o;

    to_ckr_valid         = ckr_valid_i;
    to_ckr_channel       = ckr_channel_i;
    to_ckr_data          = ckr_data_i;
    to_ckr_valid[Link]   = from_cks_valid[Link];
    to_ckr_channel[Link] = cks_channel_o;
    to_ckr_data[Link]    = cks_data_o;

    from_cks_room        = {link_room, cks_room_i};
    from_cks_room[Link]  = to_ckr_room[Link];
    from_ckr_room        = ckr_room_i;
    from_ckr_room[Link]  = to_cks_room[Link];
  end
  assign cks_room_o  = to_cks_room;
  assign ckr_room_o  = to_ckr_room;
  assign cks_valid_o = from_cks_valid[Links-1:0];
  assign ckr_valid_o = from_ckr_valid;

  unisono_smi_cks #(
    .Links          (Links),
    .Link           (Link),
    .Endpoints      (Endpoints),
    .PacketBytes    (PacketBytes),
    .Words          (Words),
    .VirtualChannels(VirtualChannels),
    .MaxRanks       (MaxRanks),
    .Burst          (Burst),
    .Depth          (Depth)
  ) u_cks (
    .clk_i,
    .rst_ni,
    .wr_en_i      (cks_wr_en_i),
    .wr_address_i (cks_wr_address_i),
    .wr_entry_i,
    .ranks_i,
    .in_valid_i   (to_cks_valid),
    .in_channel_i (to_cks_channel),
    .in_data_i    (to_cks_data),
    .in_room_o    (to_cks_room),
    .end_valid_i  (send_valid_i),
    .end_ready_o  (send_ready_o),
    .end_data_i   (send_data_i),
    .out_valid_o  (from_cks_valid),
    .out_channel_o(cks_channel_o),
    .out_data_o   (cks_data_o),
    .out_room_i   (from_cks_room),
    .stray_o      (cks_stray_o)
  );

  unisono_smi_ckr #(
    .Links          (Links),
    .Link           (Link),
    .Endpoints      (Endpoints),
    .PacketBytes    (PacketBytes),
    .Words          (Words),
    .VirtualChannels(VirtualChannels),
    .MaxPorts       (MaxPorts),
    .Burst          (Burst),
    .Depth          (Depth),
    .LinkDepth      (LinkDepth)
  ) u_ckr (
    .clk_i,
    .rst_ni,
    .wr_en_i       (ckr_wr_en_i),
    .wr_address_i  (ckr_wr_address_i),
    .wr_entry_i,
    .ports_i,
    .rank_i,
    .in_valid_i    (to_ckr_valid),
    .in_channel_i  (to_ckr_channel),
    .in_data_i     (to_ckr_data),
    .in_room_o     (to_ckr_room),
    .link_valid_i,
    .link_channel_i,
    .link_data_i,
    .freed_o       (link_freed_o),
    .out_valid_o   (from_ckr_valid),
    .out_channel_o (ckr_channel_o),
    .out_data_o    (ckr_data_o),
    .out_room_i    (from_ckr_room),
    .end_valid_o   (receive_valid_o),
    .end_room_i    (receive_room_i),
    .stray_o       (ckr_stray_o)
  );

  unisono_smi_link #(
    .Width    (Width),
    .Channels (Channels),
    .LinkDepth(LinkDepth),
    .Words    (Words)
  ) u_link (
    .clk_i,
    .rst_ni,
    .in_valid_i   (from_cks_valid[Links]),
    .in_channel_i (cks_channel_o),
    .in_data_i    (cks_data_o),
    .room_o       (link_room),
    .up_i         (link_up_i),
    .freed_i      (link_freed_i),
    .out_valid_o  (link_valid_o),
    .out_ready_i  (link_ready_i),
    .out_channel_o(link_channel_o),
    .out_data_o   (link_data_o)
  );

endmodule
