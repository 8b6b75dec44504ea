// The sending end of a cable: counts the free places at the other end, for each channel, and offers
// packets to the wire.
//
// Who decides that a packet goes by this link sees room on its channel only if the other end has a
// place for it. So what is on the wire is always taken, and a channel that stands still at the other
// end leaves the wire to the others.
//
// Places are LinkDepth at both ends, a word each; the other end tells of each one that it frees.
// Before the other end is up there is no place at all. Counts begin anew each time it comes up.
//
// Latency: 1 cycle. Throughput: 1 word per cycle, if the wire takes it.

module unisono_smi_link #(
  parameter int unsigned Width        = 256,
  parameter int unsigned Channels     = 2,
  parameter int unsigned LinkDepth    = 16,
  // Most words of a packet.
  parameter int unsigned Words        = 1,
  localparam int unsigned ChannelBits = $clog2(Channels)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   in_valid_i,
  input  logic [ChannelBits-1:0] in_channel_i,
  input  logic [Width-1:0]       in_data_i,
  // A place for one more packet, and two words before it.
  output logic [Channels-1:0]    room_o,

  // The other end is running, and has taken a packet out of its queue.
  input  logic                   up_i,
  input  logic [Channels-1:0]    freed_i,

  // The wire.
  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [ChannelBits-1:0] out_channel_o,
  output logic [Width-1:0]       out_data_o
);

  localparam int unsigned Slack      = Words + 1;
  localparam int unsigned CreditBits = $clog2(LinkDepth + 1);

  if (LinkDepth < Slack + 2) begin : gen_bad_depth
    $error("unisono_smi_link: LinkDepth must be at least Words + 3");
  end

  logic up_q, outlet_room;

  always_ff @(posedge clk_i) begin
    up_q <= rst_ni && up_i;
  end

  for (genvar c = 0; c < Channels; c++) begin : gen_channel
    logic [CreditBits-1:0] places_d, places_q;
    logic                  spend, enough_q;

    assign spend = in_valid_i && in_channel_i == ChannelBits'(c);

    always_comb begin
      places_d = places_q;
      if (!up_i) begin
        places_d = '0;
      end else if (!up_q) begin
        places_d = CreditBits'(LinkDepth);
      end else if (spend && !freed_i[c]) begin
        places_d = places_q - CreditBits'(1);
      end else if (!spend && freed_i[c]) begin
        places_d = places_q + CreditBits'(1);
      end
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        places_q <= '0;
        enough_q <= 1'b0;
      end else if (in_valid_i || freed_i[c] || up_i != up_q) begin
        places_q <= places_d;
        enough_q <= 32'(places_d) > Slack;
      end
    end

    assign room_o[c] = enough_q && outlet_room;

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni && up_q && up_i && (in_valid_i || freed_i[c])) begin
        assert (!spend || places_q != '0) else $error("%m: sent without a place at the other end");
        assert (!freed_i[c] || 32'(places_q) < LinkDepth)
          else $error("%m: the other end has freed more places than there are");
      end
    end
`endif
  end

  localparam int unsigned OutletDepth = Words > 1 ? 16 : 8;
  logic [$clog2(OutletDepth+1)-1:0] outlet_count;
  logic                             unused_ready;

  unisono_fifo #(
    .Width(Width + ChannelBits),
    .Depth(OutletDepth)
  ) u_outlet (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o (unused_ready),
    .in_data_i  ({in_channel_i, in_data_i}),
    .out_valid_o,
    .out_ready_i,
    .out_data_o ({out_channel_o, out_data_o}),
    .count_o    (outlet_count)
  );
  assign outlet_room = 32'(outlet_count) < OutletDepth - Slack;

endmodule
