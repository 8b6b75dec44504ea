// The heart of a communication kernel: of the heads of all its inputs, takes one whose way is free.
//
// Each input is an unisono_smi_queue, which shows the head of each of its channels with the route it
// is to take: a target and the channel there. A head asks if its target has room on that channel.
// So no packet holds up one of another channel, of another input, or behind another target; SMI's
// kernels, which read a packet and then wait until it can go, do not have this.
// A packet of several words goes as a whole: once its first word has been taken, nothing else is
// until its last. A target needs room for a whole packet, so no packet waits half way.
// A head whose route is all ones is of no use to anybody: it is taken and told as stray.
//
// Latency: 2 cycles from a head to out_valid_o. Throughput: 1 word per cycle. Room must be told
// with Words + 1 words to spare (Slack), because two decisions may be under way. Burst counts words.

module unisono_smi_select #(
  parameter int unsigned Inputs       = 5,
  parameter int unsigned Channels     = 2,
  parameter int unsigned Targets      = 5,
  parameter int unsigned Width        = 256,
  parameter int unsigned Burst        = 8,
  // Most words of a packet.
  parameter int unsigned Words        = 1,
  localparam int unsigned ChannelBits = Channels > 1 ? $clog2(Channels) : 1,
  localparam int unsigned TargetBits  = $clog2(Targets + 1),
  // Target above, channel below.
  localparam int unsigned RouteBits   = TargetBits + ChannelBits
) (
  input  logic                                           clk_i,
  input  logic                                           rst_ni,

  input  logic [Inputs-1:0][Channels-1:0]                head_valid_i,
  input  logic [Inputs-1:0][Channels-1:0][RouteBits-1:0] head_route_i,
  input  logic [Inputs-1:0][Channels-1:0]                head_last_i,
  output logic [Inputs-1:0][Channels-1:0]                pop_o,
  // Of the packet that was popped in the cycle before, and the route of its head.
  input  logic [Inputs-1:0][RouteBits-1:0]               route_i,
  input  logic [Inputs-1:0][Width-1:0]                   data_i,

  input  logic [Targets-1:0][Channels-1:0]               room_i,
  // At most one bit. The target takes the packet.
  output logic [Targets-1:0]                             out_valid_o,
  output logic [ChannelBits-1:0]                         out_channel_o,
  output logic [Width-1:0]                               out_data_o,
  // The packet whose first word is in out_data_o is one that nobody wants.
  output logic                                           stray_o
);

  localparam int unsigned Requests  = Inputs * Channels;
  localparam int unsigned IndexBits = Requests > 1 ? $clog2(Requests) : 1;
  localparam logic [RouteBits-1:0] Nowhere = '1;

  // Room by route. What is stray goes at once, and a route that there is not never comes.
  logic [(1<<RouteBits)-1:0]              free;
  logic [Targets-1:0][(1<<ChannelBits)-1:0] target_room;
  for (genvar t = 0; t < Targets; t++) begin : gen_target
    assign target_room[t] = (1 << ChannelBits)'(room_i[t]);
  end
  assign free = (1 << RouteBits)'(target_room) | ((1 << RouteBits)'(1) << Nowhere);

  logic [Requests-1:0]                request, grant, last;
  // Within a packet: the only one that may go on.
  logic                               within_q;
  logic [Requests-1:0]                holder_q;
  logic [IndexBits-1:0]               unused_index;

  assign last   = head_last_i;
  for (genvar i = 0; i < Inputs; i++) begin : gen_request
    always_comb begin
      request[i*Channels+:Channels] = '0;
      if (within_q) begin
        request[i*Channels+:Channels] = holder_q[i*Channels+:Channels];
      end else if (head_valid_i[i] != '0) begin
        for (int unsigned c = 0; c < Channels; c++) begin
          request[i*Channels+c] = head_valid_i[i][c] && free[head_route_i[i][c]];
        end
      end
    end
  end

  if (Words > 1) begin : gen_within
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        within_q <= 1'b0;
        holder_q <= '0;
      end else begin
        within_q <= (grant & ~last) != '0;
        holder_q <= grant;
      end
    end
  end else begin : gen_word
    logic unused_last;
    assign unused_last = ^last;
    assign within_q = 1'b0;
    assign holder_q = '0;
  end

  unisono_smi_arbiter #(
    .Requests(Requests),
    .Burst   (Burst)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .request_i(request),
    .grant_o  (grant),
    .index_o  (unused_index)
  );
  assign pop_o = grant;

  // The cycle after: the queue offers the packet, and its route; that of a packet's first word counts.
  logic                 taken_q, first_q;
  logic [Inputs-1:0]    input_d, input_q;
  logic [RouteBits-1:0] offered, route, route_q;
  logic [Width-1:0]     data;

  for (genvar i = 0; i < Inputs; i++) begin : gen_input
    assign input_d[i] = grant[i*Channels+:Channels] != '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      taken_q <= 1'b0;
    end else begin
      taken_q <= request != '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (request != '0) begin
      input_q <= input_d;
      first_q <= !within_q;
    end
  end

  always_comb begin
    offered = '0;
    data    = '0;
    if (taken_q) begin
      for (int unsigned i = 0; i < Inputs; i++) begin
        if (input_q[i]) begin
          offered |= route_i[i];
          data    |= data_i[i];
        end
      end
    end
  end
  assign route = Words == 1 || first_q ? offered : route_q;

  // And the one after that: it is on its way.
  logic [Targets-1:0]     out_valid_d, out_valid_q;
  logic [ChannelBits-1:0] out_channel_q;
  logic [Width-1:0]       out_data_q;
  logic                   stray_q;

  for (genvar t = 0; t < Targets; t++) begin : gen_valid
    assign out_valid_d[t] = taken_q && route[RouteBits-1:ChannelBits] == TargetBits'(t);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q <= '0;
      stray_q     <= 1'b0;
    end else begin
      out_valid_q <= out_valid_d;
      stray_q     <= taken_q && first_q && offered == Nowhere;
    end
  end

  always_ff @(posedge clk_i) begin
    if (taken_q) begin
      route_q       <= route;
      out_channel_q <= route[ChannelBits-1:0];
      out_data_q    <= data;
    end
  end

  assign out_valid_o   = out_valid_q;
  assign out_channel_o = out_channel_q;
  assign out_data_o    = out_data_q;
  assign stray_o       = stray_q;

`ifndef SYNTHESIS
  logic [Requests-1:0] head_valid_flat;
  assign head_valid_flat = head_valid_i;
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert ($onehot0(out_valid_q)) else $error("%m: a packet goes to two targets");
      assert (!within_q || (holder_q & ~head_valid_flat) == '0)
        else $error("%m: a packet is not whole");
      assert (!taken_q || route == Nowhere || 32'(route[RouteBits-1:ChannelBits]) < Targets)
        else $error("%m: a route to a target that there is not");
    end
  end
`endif

endmodule
