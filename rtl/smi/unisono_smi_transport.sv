// SMI's transport: a pair of communication kernels for each link of a node, each joined to all
// others, and the tables by which packets find their way. Packets go from endpoints of this node to
// endpoints of any node, over as many cables as it takes; nothing is in between but such transports.
//
// Endpoint e, sending or receiving, belongs to the kernels of link e % Links, and is number
// e / Links there, as in the images of `unisono route`.
//
// Latency, without a cable's own: 7 cycles for a node that a packet passes through by one link, 3
// more if it goes on by another; 4 from an endpoint to the wire, 5 from the wire to an endpoint, 3
// more for each further kernel. Throughput: each kernel passes a packet per cycle.

module unisono_smi_transport #(
  parameter int unsigned Links           = 4,
  // Logical ports, for which the image is made.
  parameter int unsigned Ports           = 4,
  // Sending endpoints, and as many receiving ones.
  parameter int unsigned Endpoints       = 2 * Ports,
  // Of a word: 32, with SMI's header; or 64, 128, 256 with a wide one.
  parameter int unsigned PacketBytes     = 32,
  // Most words of a packet; with more than one the header is in the first, and words are 64 bytes
  // or more. PacketBytes * Words is at most 256.
  parameter int unsigned Words           = 1,
  // SMI's R: words taken from one input while others wait.
  parameter int unsigned Burst           = 8,
  // Of data; control has as many of its own.
  parameter int unsigned VirtualChannels = 1,
  parameter int unsigned MaxRanks        = 128,
  // Places of a channel, in words: of inner queues, of a link's queue (the same at both ends), and of the
  // queue of a receiving endpoint.
  parameter int unsigned Depth           = 16,
  parameter int unsigned LinkDepth       = 16,
  parameter int unsigned EndpointDepth   = 16,
  // A word; with several to a packet its top bit says that it is the last one.
  localparam int unsigned Width          = unisono_smi_pkg::word_bits(PacketBytes, Words),
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
  output logic [unisono_smi_pkg::RankBits-1:0] rank_o,
  output logic [unisono_smi_pkg::RankBits-1:0] ranks_o,

  input  logic [Endpoints-1:0]              send_valid_i,
  output logic [Endpoints-1:0]              send_ready_o,
  input  logic [Endpoints-1:0][Width-1:0]   send_data_i,

  output logic [Endpoints-1:0]              receive_valid_o,
  input  logic [Endpoints-1:0]              receive_ready_i,
  output logic [Endpoints-1:0][Width-1:0]   receive_data_o,

  // Cables. What goes out is told with its channel, comes in in order, and is always taken; beside
  // it go, in the other direction, whether this node runs, and a bit for each packet that has left
  // the queue of a channel. An end without a cable has up low.
  output logic [Links-1:0]                  link_valid_o,
  input  logic [Links-1:0]                  link_ready_i,
  output logic [Links-1:0][ChannelBits-1:0] link_channel_o,
  output logic [Links-1:0][Width-1:0]       link_data_o,
  input  logic [Links-1:0]                  link_up_i,
  input  logic [Links-1:0][Channels-1:0]    link_freed_i,
  input  logic [Links-1:0]                  link_valid_i,
  input  logic [Links-1:0][ChannelBits-1:0] link_channel_i,
  input  logic [Links-1:0][Width-1:0]       link_data_i,
  output logic [Links-1:0]                  link_up_o,
  output logic [Links-1:0][Channels-1:0]    link_freed_o,

  // Packets for which the tables know no rank, no port, no endpoint: how many since the image was
  // loaded, and the first of them.
  output logic [31:0]                       strays_o,
  output unisono_smi_pkg::stray_t           first_stray_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned SendBits    = $clog2(VirtualChannels * MaxRanks);
  localparam int unsigned ReceiveBits = $clog2(2 * Ports);

  if (Links == 0 || Links > 8) begin : gen_bad_links
    $error("unisono_smi_transport: Links must be 1 to 8");
  end
  if (PacketBytes != 32 && PacketBytes != 64 && PacketBytes != 128 && PacketBytes != 256)
  begin : gen_bad_bytes
    $error("unisono_smi_transport: PacketBytes must be 32, 64, 128 or 256");
  end
  if (Words == 0 || (Words > 1 && (PacketBytes == 32 || PacketBytes * Words > 256)))
  begin : gen_bad_words
    $error("unisono_smi_transport: packets of several words are wide, and of 256 bytes at most");
  end
  if (VirtualChannels == 0 || VirtualChannels > 8) begin : gen_bad_channels
    $error("unisono_smi_transport: VirtualChannels must be 1 to 8");
  end
  if (MaxRanks == 0 || MaxRanks > 128 || Ports == 0 || Ports > 128) begin : gen_bad_sizes
    $error("unisono_smi_transport: MaxRanks and Ports must be 1 to 128");
  end

  logic [Links-1:0]       cks_wr_en, ckr_wr_en;
  logic [SendBits-1:0]    cks_wr_address;
  logic [ReceiveBits-1:0] ckr_wr_address;
  logic [6:0]             wr_entry;
  logic [RankBits-1:0]    rank, ranks;
  logic [PortBits-1:0]    ports;
  logic                   running;

  unisono_smi_loader #(
    .Links          (Links),
    .VirtualChannels(VirtualChannels),
    .MaxRanks       (MaxRanks),
    .Ports          (Ports)
  ) u_loader (
    .clk_i,
    .rst_ni,
    .image_valid_i,
    .image_ready_o,
    .image_data_i,
    .image_last_i,
    .cks_wr_en_o     (cks_wr_en),
    .cks_wr_address_o(cks_wr_address),
    .ckr_wr_en_o     (ckr_wr_en),
    .ckr_wr_address_o(ckr_wr_address),
    .wr_entry_o      (wr_entry),
    .running_o       (running),
    .image_o,
    .ranks_o         (ranks),
    .rank_o          (rank),
    .ports_o         (ports)
  );
  assign running_o = running;
  assign rank_o    = rank;
  assign ranks_o   = ranks;

  // Until there are tables, everything is as after reset.
  logic run_nq;
  always_ff @(posedge clk_i) begin
    run_nq <= rst_ni && running;
  end
  assign link_up_o = {Links{run_nq}};

  // What each kernel offers, by kernel and target, and the room of each queue, by reader and writer.
  logic [Links-1:0][Links-1:0]               cks_valid, ckr_valid;
  logic [Links-1:0][ChannelBits-1:0]         cks_channel, ckr_channel;
  logic [Links-1:0][Width-1:0]               cks_data, ckr_data;
  logic [Links-1:0][Links-1:0][Channels-1:0] cks_room, ckr_room;
  logic [Links-1:0]                          cks_stray, ckr_stray;

  for (genvar k = 0; k < Links; k++) begin : gen_link
    // Endpoints k, k + Links, k + 2 Links, and so on.
    localparam int unsigned Own  = (Endpoints + Links - 1 - k) / Links;
    localparam int unsigned Ends = Own > 0 ? Own : 1;

    logic [Links-1:0]               to_cks, to_ckr;
    logic [Links-1:0][Channels-1:0] cks_free, ckr_free;
    for (genvar j = 0; j < Links; j++) begin : gen_other
      assign to_cks[j]   = j != k && cks_valid[j][k];
      assign to_ckr[j]   = j != k && ckr_valid[j][k];
      assign cks_free[j] = cks_room[j][k];
      assign ckr_free[j] = ckr_room[j][k];
    end

    logic [Ends-1:0]            send_valid, send_ready, receive_valid, receive_room;
    logic [Ends-1:0][Width-1:0] send_data;

    for (genvar e = 0; e < Own; e++) begin : gen_end
      localparam int unsigned Number = e * Links + k;
      assign send_valid[e]        = send_valid_i[Number];
      assign send_data[e]         = send_data_i[Number];
      assign send_ready_o[Number] = send_ready[e];

      unisono_smi_outlet #(
        .Width(Width),
        .Depth(EndpointDepth),
        .Slack(Words + 1)
      ) u_outlet (
        .clk_i,
        .rst_ni     (run_nq),
        .in_valid_i (receive_valid[e]),
        .in_data_i  (ckr_data[k]),
        .room_o     (receive_room[e]),
        .out_valid_o(receive_valid_o[Number]),
        .out_ready_i(receive_ready_i[Number]),
        .out_data_o (receive_data_o[Number])
      );
    end
    if (Own == 0) begin : gen_no_end
      logic unused_end;
      assign send_valid   = '0;
      assign send_data    = '0;
      assign receive_room = '0;
      assign unused_end   = ^{send_ready, receive_valid};
    end

    unisono_smi_pair #(
      .Links          (Links),
      .Link           (k),
      .Endpoints      (Own),
      .PacketBytes    (PacketBytes),
      .Words          (Words),
      .VirtualChannels(VirtualChannels),
      .MaxRanks       (MaxRanks),
      .MaxPorts       (Ports),
      .Burst          (Burst),
      .Depth          (Depth),
      .LinkDepth      (LinkDepth)
    ) u_pair (
      .clk_i,
      .rst_ni          (run_nq),
      .cks_wr_en_i     (cks_wr_en[k]),
      .cks_wr_address_i(cks_wr_address),
      .ckr_wr_en_i     (ckr_wr_en[k]),
      .ckr_wr_address_i(ckr_wr_address),
      .wr_entry_i      (wr_entry),
      .ranks_i         (ranks),
      .rank_i          (rank),
      .ports_i         (ports),
      .cks_valid_i     (to_cks),
      .cks_channel_i   (cks_channel),
      .cks_data_i      (cks_data),
      .cks_room_o      (cks_room[k]),
      .cks_valid_o     (cks_valid[k]),
      .cks_channel_o   (cks_channel[k]),
      .cks_data_o      (cks_data[k]),
      .cks_room_i      (cks_free),
      .ckr_valid_i     (to_ckr),
      .ckr_channel_i   (ckr_channel),
      .ckr_data_i      (ckr_data),
      .ckr_room_o      (ckr_room[k]),
      .ckr_valid_o     (ckr_valid[k]),
      .ckr_channel_o   (ckr_channel[k]),
      .ckr_data_o      (ckr_data[k]),
      .ckr_room_i      (ckr_free),
      .send_valid_i    (send_valid),
      .send_ready_o    (send_ready),
      .send_data_i     (send_data),
      .receive_valid_o (receive_valid),
      .receive_room_i  (receive_room),
      .link_valid_o    (link_valid_o[k]),
      .link_ready_i    (link_ready_i[k]),
      .link_channel_o  (link_channel_o[k]),
      .link_data_o     (link_data_o[k]),
      .link_up_i       (link_up_i[k]),
      .link_freed_i    (link_freed_i[k]),
      .link_valid_i    (link_valid_i[k]),
      .link_channel_i  (link_channel_i[k]),
      .link_data_i     (link_data_i[k]),
      .link_freed_o    (link_freed_o[k]),
      .cks_stray_o     (cks_stray[k]),
      .ckr_stray_o     (ckr_stray[k])
    );
  end

  // Stray packets: all are counted, the first is named.
  logic [31:0] strays_q;
  stray_t      first_q, found;
  logic [4:0]  more;

  always_comb begin
    found = '0;
    more  = '0;
    for (int unsigned k = Links; k > 0; k--) begin
      more = more + 5'(cks_stray[k-1]) + 5'(ckr_stray[k-1]);
      if (cks_stray[k-1]) begin
        found = stray_of(header_of(PacketBytes, cks_data[k-1][8*PacketBytes-1-:WideHeaderBits]));
      end
      if (ckr_stray[k-1]) begin
        found = stray_of(header_of(PacketBytes, ckr_data[k-1][8*PacketBytes-1-:WideHeaderBits]));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!run_nq) begin
      strays_q <= '0;
      first_q  <= '0;
    end else if (more != '0) begin
      strays_q <= strays_q + 32'(more);
      if (strays_q == '0) begin
        first_q <= found;
      end
    end
  end
  assign strays_o      = strays_q;
  assign first_stray_o = first_q;

endmodule
