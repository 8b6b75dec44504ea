// Communication kernel of a link that sends (SMI's CK_S): looks up the destination of every packet,
// and hands it to the link, to another CKS of the node, or to the CKR of this link.
//
// Inputs and targets are numbered alike: j is the CKS of link j, or where j is this link its CKR;
// target Links is the link itself. Entries of the table are those of an image of `unisono route`:
// bits 3 to 0 SMI's code (0 link, 1 CKR, 2 and more the other CKS from the lowest), bits 6 to 4 the
// virtual channel on which the packet goes on. Destinations beyond the last rank, and entries that
// lead nowhere, make a packet stray.
//
// Latency: 3 cycles from a packet's last word to out_valid_o, 1 of them the queue's. Throughput: 1
// word per cycle. Packets of one input, channel and target stay in order.

module unisono_smi_cks #(
  parameter int unsigned Links           = 4,
  parameter int unsigned Link            = 0,
  // Endpoints of this CKS.
  parameter int unsigned Endpoints       = 1,
  parameter int unsigned PacketBytes     = 32,
  // Most words of a packet.
  parameter int unsigned Words           = 1,
  parameter int unsigned VirtualChannels = 1,
  parameter int unsigned MaxRanks        = 128,
  parameter int unsigned Burst           = 8,
  // Places of each channel of an inner queue.
  parameter int unsigned Depth           = 16,
  localparam int unsigned Width          = unisono_smi_pkg::word_bits(PacketBytes, Words),
  localparam int unsigned Bits           = PacketBytes * 8,
  localparam int unsigned Channels       = 2 * VirtualChannels,
  localparam int unsigned ChannelBits    = $clog2(Channels),
  localparam int unsigned AddressBits    = $clog2(VirtualChannels * MaxRanks),
  // Of arrays that would be empty if there were no endpoint.
  localparam int unsigned Ends           = Endpoints > 0 ? Endpoints : 1
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  // The table, and the number of ranks in it.
  input  logic                              wr_en_i,
  input  logic [AddressBits-1:0]            wr_address_i,
  input  logic [6:0]                        wr_entry_i,
  input  logic [unisono_smi_pkg::RankBits-1:0] ranks_i,

  // From the other CKS; at [Link] from this link's CKR.
  input  logic [Links-1:0]                  in_valid_i,
  input  logic [Links-1:0][ChannelBits-1:0] in_channel_i,
  input  logic [Links-1:0][Width-1:0]       in_data_i,
  output logic [Links-1:0][Channels-1:0]    in_room_o,

  input  logic [Ends-1:0]                   end_valid_i,
  output logic [Ends-1:0]                   end_ready_o,
  input  logic [Ends-1:0][Width-1:0]        end_data_i,

  // To the other CKS; at [Link] to this link's CKR, at [Links] to the link.
  output logic [Links:0]                    out_valid_o,
  output logic [ChannelBits-1:0]            out_channel_o,
  output logic [Width-1:0]                  out_data_o,
  input  logic [Links:0][Channels-1:0]      out_room_i,

  // The packet in out_data_o is for no rank that the table knows a way to.
  output logic                              stray_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned Inputs      = Links + Endpoints;
  localparam int unsigned Targets     = Links + 1;
  localparam int unsigned TargetBits  = $clog2(Targets + 1);
  localparam int unsigned RouteBits   = TargetBits + ChannelBits;
  localparam int unsigned VirtualBits = VirtualChannels > 1 ? $clog2(VirtualChannels) : 1;
  localparam logic [RouteBits-1:0] Nowhere = '1;

  // Channel of a kind, control or not, and a virtual channel.
  function automatic logic [ChannelBits-1:0] channel_of(input logic control,
                                                        input logic [VirtualBits-1:0] lane);
    return ChannelBits'((control ? VirtualChannels : 0) + (VirtualChannels > 1 ? 32'(lane) : 0));
  endfunction

  // The route that an entry of the table means.
  function automatic logic [RouteBits-1:0] route_of(input logic [6:0] entry, input logic control);
    logic [3:0]            code, other;
    logic [TargetBits-1:0] target;
    code  = entry[3:0];
    other = code - 4'd2;
    if (32'(code) > Link + 1) begin
      other = other + 4'd1;
    end
    if (32'(code) > Links || 32'(entry[6:4]) >= VirtualChannels) begin
      return Nowhere;
    end
    case (code)
      4'd0:    target = TargetBits'(Links);
      4'd1:    target = TargetBits'(Link);
      default: target = TargetBits'(other);
    endcase
    return {target, channel_of(control, VirtualBits'(entry[6:4]))};
  endfunction

  logic [Inputs-1:0]                              write;
  logic [Inputs-1:0][ChannelBits-1:0]             write_channel;
  logic [Inputs-1:0][Width-1:0]                   write_data;
  logic [Inputs-1:0][RouteBits-1:0]               write_route;
  logic [Inputs-1:0][AddressBits-1:0]             address;
  logic [Inputs-1:0][6:0]                         entry;
  logic [Inputs-1:0][Channels-1:0]                head_valid, head_last, pop;
  logic [Inputs-1:0][Channels-1:0][RouteBits-1:0] head_route;
  logic [Inputs-1:0][RouteBits-1:0]               route;
  logic [Inputs-1:0][Width-1:0]                   data;

  unisono_smi_table #(
    .Entries(VirtualChannels * MaxRanks),
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
    logic [RankBits-1:0]       dst;
    logic [VirtualBits-1:0]    lane;
    assign header = write_data[i][Bits-1-:WideHeaderBits];
    assign dst    = destination_of(PacketBytes, header);
    assign lane   = VirtualBits'(32'(write_channel[i]) % VirtualChannels);

    always_comb begin
      address[i] = 'x;
      if (write[i]) begin
        address[i] = AddressBits'((VirtualChannels > 1 ? 32'(lane) : 0) * MaxRanks
                                  + 32'(dst) % MaxRanks);
      end
    end
    always_comb begin
      write_route[i] = 'x;
      if (write[i]) begin
        write_route[i] = dst < ranks_i ? route_of(entry[i], is_control(PacketBytes, header))
                                       : Nowhere;
      end
    end

    logic unused_header;
    assign unused_header = ^{header, lane};

    if (i < Links) begin : gen_inner
      assign write[i]         = in_valid_i[i];
      assign write_channel[i] = in_channel_i[i];
      assign write_data[i]    = in_data_i[i];

      unisono_smi_queue #(
        .Width    (Width),
        .RouteBits(RouteBits),
        .Channels (Channels),
        .Depth    (Depth),
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
        .room_o      (in_room_o[i]),
        .head_valid_o(head_valid[i]),
        .head_route_o(head_route[i]),
        .head_last_o (head_last[i]),
        .pop_i       (pop[i]),
        .keep_i      (1'b0),
        .out_route_o (route[i]),
        .out_data_o  (data[i])
      );
    end else begin : gen_end
      // Begins on virtual channel 0. One queue: who sends data sends no control.
      logic [RouteBits-1:0] head;
      logic                 valid, last;

      assign write[i]         = end_valid_i[i-Links] && end_ready_o[i-Links];
      assign write_channel[i] = channel_of(is_control(PacketBytes, header), '0);
      assign write_data[i]    = end_data_i[i-Links];
      assign head_valid[i]    = Channels'(valid);
      assign head_route[i]    = {Channels{head}};
      assign head_last[i]     = {Channels{last}};

      unisono_smi_queue #(
        .Width    (Width),
        .RouteBits(RouteBits),
        .Channels (1),
        .Depth    (Depth),
        .Slack    (0),
        .Words    (Words),
        .Holds    (1'b0)
      ) u_queue (
        .clk_i,
        .rst_ni,
        .in_valid_i  (write[i]),
        .in_channel_i(1'b0),
        .in_route_i  (write_route[i]),
        .in_last_i   (write_data[i][Width-1]),
        .in_data_i   (write_data[i]),
        .room_o      (end_ready_o[i-Links]),
        .head_valid_o(valid),
        .head_route_o(head),
        .head_last_o (last),
        .pop_i       (pop[i][0]),
        .keep_i      (1'b0),
        .out_route_o (route[i]),
        .out_data_o  (data[i])
      );

      logic unused_pop;
      assign unused_pop = ^pop[i];
    end
  end

  if (Endpoints == 0) begin : gen_no_end
    logic unused_end;
    assign unused_end  = ^{end_valid_i, end_data_i};
    assign end_ready_o = '0;
  end

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
    .room_i      (out_room_i),
    .out_valid_o,
    .out_channel_o,
    .out_data_o,
    .stray_o
  );

endmodule
