// Communication kernel of a link that receives (SMI's CK_R): hands packets for other ranks to the
// CKS of this link, and looks up the port of those for its own rank, which go to an endpoint of this
// CKR or to another CKR of the node.
//
// Inputs and targets are numbered alike: j is the CKR of link j, or where j is this link its CKS;
// input Links is the link itself, targets Links and more are endpoints. Entries of the table are
// those of an image of `unisono route`, two for each port, data and control: 0 nobody, 1 and more
// the other CKR from the lowest, Links and more the endpoints of this CKR. A packet that nobody
// takes, or whose port is beyond the last, is stray.
//
// Latency: 3 cycles from a packet's last word to out_valid_o, 1 of them the queue's. Throughput: 1
// word per cycle. freed_o tells the other end of the cable that a place of the link's queue is free again.

module unisono_smi_ckr #(
  parameter int unsigned Links           = 4,
  parameter int unsigned Link            = 0,
  // Endpoints of this CKR.
  parameter int unsigned Endpoints       = 1,
  parameter int unsigned PacketBytes     = 32,
  // Most words of a packet.
  parameter int unsigned Words           = 1,
  parameter int unsigned VirtualChannels = 1,
  parameter int unsigned MaxPorts        = 16,
  parameter int unsigned Burst           = 8,
  // Places of each channel of an inner queue, and of the link's queue.
  parameter int unsigned Depth           = 16,
  parameter int unsigned LinkDepth       = 16,
  localparam int unsigned Width          = unisono_smi_pkg::word_bits(PacketBytes, Words),
  localparam int unsigned Bits           = PacketBytes * 8,
  localparam int unsigned Channels       = 2 * VirtualChannels,
  localparam int unsigned ChannelBits    = $clog2(Channels),
  localparam int unsigned AddressBits    = $clog2(2 * MaxPorts),
  // Of arrays that would be empty if there were no endpoint.
  localparam int unsigned Ends           = Endpoints > 0 ? Endpoints : 1
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  // The table, the number of ports in it, and the rank of this node.
  input  logic                              wr_en_i,
  input  logic [AddressBits-1:0]            wr_address_i,
  input  logic [6:0]                        wr_entry_i,
  input  logic [unisono_smi_pkg::PortBits-1:0] ports_i,
  input  logic [unisono_smi_pkg::RankBits-1:0] rank_i,

  // From the other CKR; at [Link] from this link's CKS.
  input  logic [Links-1:0]                  in_valid_i,
  input  logic [Links-1:0][ChannelBits-1:0] in_channel_i,
  input  logic [Links-1:0][Width-1:0]       in_data_i,
  output logic [Links-1:0][Channels-1:0]    in_room_o,

  // From the link; who sends counts the places.
  input  logic                              link_valid_i,
  input  logic [ChannelBits-1:0]            link_channel_i,
  input  logic [Width-1:0]                  link_data_i,
  output logic [Channels-1:0]               freed_o,

  // To the other CKR; at [Link] to this link's CKS.
  output logic [Links-1:0]                  out_valid_o,
  output logic [ChannelBits-1:0]            out_channel_o,
  output logic [Width-1:0]                  out_data_o,
  input  logic [Links-1:0][Channels-1:0]    out_room_i,

  // To endpoints, with the packet in out_data_o.
  output logic [Ends-1:0]                   end_valid_o,
  input  logic [Ends-1:0]                   end_room_i,

  // The packet in out_data_o is for no endpoint.
  output logic                              stray_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned Inputs     = Links + 1;
  localparam int unsigned Targets    = Links + Ends;
  localparam int unsigned TargetBits = $clog2(Targets + 1);
  localparam int unsigned RouteBits  = TargetBits + ChannelBits;
  localparam logic [RouteBits-1:0] Nowhere = '1;

  if (Links + Endpoints > 127) begin : gen_bad_endpoints
    $error("unisono_smi_ckr: an entry of the table cannot name so many endpoints");
  end

  // The target that an entry of the table means, all ones for none.
  function automatic logic [TargetBits-1:0] target_of(input logic [6:0] entry);
    logic [6:0] other;
    if (entry == '0 || 32'(entry) >= Links + Endpoints) begin
      return '1;
    end
    if (32'(entry) >= Links) begin
      return TargetBits'(entry);
    end
    other = entry - 7'd1;
    return TargetBits'(32'(entry) > Link ? other + 7'd1 : other);
  endfunction

  logic [Inputs-1:0]                              write;
  logic [Inputs-1:0][ChannelBits-1:0]             write_channel;
  logic [Inputs-1:0][Width-1:0]                   write_data;
  logic [Inputs-1:0][RouteBits-1:0]               write_route;
  logic [Inputs-1:0][AddressBits-1:0]             address;
  logic [Inputs-1:0][6:0]                         entry;
  logic [Inputs-1:0][Channels-1:0]                head_valid, head_last, pop, room;
  logic [Inputs-1:0][Channels-1:0][RouteBits-1:0] head_route;
  logic [Inputs-1:0][RouteBits-1:0]               route;
  logic [Inputs-1:0][Width-1:0]                   data;

  assign write         = {link_valid_i, in_valid_i};
  assign write_channel = {link_channel_i, in_channel_i};
  assign write_data    = {link_data_i, in_data_i};
  assign in_room_o     = room[Links-1:0];

  unisono_smi_table #(
    .Entries(2 * MaxPorts),
    .Width  (7),
    .Lookups(Inputs)
  ) u_table (
    .clk_i,
    .wr_en_i,
    .wr_address_i,
    .wr_entry_i,
    .valid_i  (write),
    .address_i(address),
    .entry_o  (entry)
  );

  for (genvar i = 0; i < Inputs; i++) begin : gen_input
    // What the header is looked up for; nothing is where nothing comes.
    logic [WideHeaderBits-1:0] header;
    logic [PortBits-1:0]       port;
    logic [TargetBits-1:0]     target;
    assign header = write_data[i][Bits-1-:WideHeaderBits];
    assign port   = port_of(PacketBytes, header);

    always_comb begin
      address[i] = 'x;
      if (write[i]) begin
        address[i] = AddressBits'(2 * (32'(port) % MaxPorts)
                                  + (is_control(PacketBytes, header) ? 1 : 0));
      end
    end
    always_comb begin
      target         = 'x;
      write_route[i] = 'x;
      if (write[i]) begin
        if (destination_of(PacketBytes, header) != rank_i) begin
          target = TargetBits'(Link);
        end else if (port < ports_i) begin
          target = target_of(entry[i]);
        end else begin
          target = '1;
        end
        write_route[i] = target == '1 ? Nowhere : {target, write_channel[i]};
      end
    end

    logic unused_header;
    assign unused_header = ^header;

    unisono_smi_queue #(
      .Width    (Width),
      .RouteBits(RouteBits),
      .Channels (Channels),
      .Depth    (i == Links ? LinkDepth : Depth),
      .Slack    (Words + 1),
      .Words    (Words),
      .Holds    (1'b0)
    ) u_queue (
      .clk_i,
      .rst_ni,
      .in_valid_i  (write[i]),
      .in_channel_i(write_channel[i]),
      .in_route_i  (write_route[i]),
      .in_last_i   (write_data[i][Width-1]),
      .in_data_i   (write_data[i]),
      .room_o      (room[i]),
      .head_valid_o(head_valid[i]),
      .head_route_o(head_route[i]),
      .head_last_o (head_last[i]),
      .pop_i       (pop[i]),
      .keep_i      (1'b0),
      .out_route_o (route[i]),
      .out_data_o  (data[i])
    );
  end

  // A register, for the way to the pins.
  logic [Channels-1:0] freed_q;
  always_ff @(posedge clk_i) begin
    freed_q <= rst_ni ? pop[Links] : '0;
  end
  assign freed_o = freed_q;

  logic unused_room;
  assign unused_room = ^room[Links];

  logic [Targets-1:0][Channels-1:0] target_room;
  logic [Targets-1:0]               target_valid;
  always_comb begin
    target_room[Links-1:0] = out_room_i;
    for (int unsigned e = 0; e < Ends; e++) begin
      target_room[Links+e] = {Channels{end_room_i[e]}};
    end
  end
  assign {end_valid_o, out_valid_o} = target_valid;

  unisono_smi_select #(
    .Inputs  (Inputs),
    .Channels(Channels),
    .Targets (Targets),
    .Width   (Width),
    .Burst   (Burst),
    .Words   (Words)
  ) u_select (
    .clk_i,
    .rst_ni,
    .head_valid_i(head_valid),
    .head_route_i(head_route),
    .head_last_i (head_last),
    .pop_o       (pop),
    .route_i     (route),
    .data_i      (data),
    .room_i      (target_room),
    .out_valid_o (target_valid),
    .out_channel_o,
    .out_data_o,
    .stray_o
  );

endmodule
