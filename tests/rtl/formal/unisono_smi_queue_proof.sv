// Proof of unisono_smi_queue: no packet is lost or made, each channel is a FIFO, routes stay with their
// packets, and room_o keeps its promise to writers that decide Slack cycles before they write.
//
// A writer here may write to a channel in a cycle only if the channel had room Slack cycles before; it
// may do so in every cycle. That is what unisono_smi_select does, with Slack = 2. The reader pops
// any head whenever it likes, or reads it and keeps it. One packet of one channel is marked and followed.

module unisono_smi_queue_proof #(
  parameter int unsigned Width     = 2,
  parameter int unsigned RouteBits = 1,
  parameter int unsigned Channels  = 2,
  parameter int unsigned Depth     = 4,
  parameter int unsigned Slack     = 2,
  parameter bit          Holds     = 1'b1,
  localparam int unsigned ChannelBits = $clog2(Channels)
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input logic                   in_valid_i,
  input logic [ChannelBits-1:0] in_channel_i,
  input logic [RouteBits-1:0]   in_route_i,
  input logic [Width-1:0]       in_data_i,
  input logic [Channels-1:0]    pop_i,
  input logic                   keep_i,
  input logic                   mark_i,
  input logic [ChannelBits-1:0] watched_i
);

  logic [Channels-1:0]                room, head_valid, unused_last;
  logic [Channels-1:0][RouteBits-1:0] head_route;
  logic [RouteBits-1:0]               route;
  logic [Width-1:0]                   data;

  unisono_smi_queue #(
    .Width    (Width),
    .RouteBits(RouteBits),
    .Channels (Channels),
    .Depth    (Depth),
    .Slack    (Slack),
    .Holds    (Holds)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_channel_i,
    .in_route_i,
    .in_last_i   (1'b1),
    .in_data_i,
    .room_o      (room),
    .head_valid_o(head_valid),
    .head_route_o(head_route),
    .head_last_o (unused_last),
    .pop_i,
    .keep_i,
    .out_route_o (route),
    .out_data_o  (data)
  );

  localparam int unsigned CountBits = $clog2(Depth + 2);
  typedef logic [CountBits-1:0] count_t;

  logic                   started_q = 1'b0;
  logic [ChannelBits-1:0] watched_q;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    watched_q <= watched_i;
  end
  always_comb begin
    if (!started_q) begin
      reset_first: assume (!rst_ni);
    end
    if (started_q) begin
      one_channel_is_watched: assume (watched_i == watched_q);
    end
  end

  // What a writer saw Slack cycles ago.
  logic [Slack:0][Channels-1:0] seen;
  assign seen[0] = room;
  for (genvar s = 0; s < Slack; s++) begin : gen_seen
    logic [Channels-1:0] seen_q;
    always_ff @(posedge clk_i) begin
      seen_q <= rst_ni ? seen[s] : '0;
    end
    assign seen[s+1] = seen_q;
  end
  always_comb begin
    if (in_valid_i) begin
      writers_saw_room: assume (seen[Slack][in_channel_i]);
    end
    one_pop: assume ((pop_i & (pop_i - 1'b1)) == '0);
    only_heads: assume ((pop_i & ~head_valid) == '0);
  end

  // Room is told from the second cycle after a reset on.
  logic gone_q;
  always_ff @(posedge clk_i) gone_q <= rst_ni && started_q;

  // Packets inside, by channel.
  count_t [Channels-1:0] held;
  for (genvar c = 0; c < Channels; c++) begin : gen_channel
    count_t inside_q;
    logic   push, pop;
    assign push = in_valid_i && in_channel_i == ChannelBits'(c);
    assign pop  = pop_i[c] && !keep_i;
    always_ff @(posedge clk_i) begin
      inside_q <= !rst_ni ? '0 : inside_q + count_t'(push) - count_t'(pop);
    end
    assign held[c] = inside_q;
    always_ff @(posedge clk_i) begin
      if (rst_ni && started_q) begin
        no_overflow: assert (inside_q <= count_t'(Depth));
        if (push) place_for_each: assert (inside_q < count_t'(Depth));
        heads_are_there: assert (head_valid[c] == (inside_q != '0));
        if (room[c]) promise: assert (inside_q + count_t'(Slack) < count_t'(Depth));
        if (inside_q < count_t'(Depth - Slack)) no_place_is_kept_back: assert (room[c] || !gone_q);
      end
    end
  end
  // The marked packet: how many are before it, whether it has been popped, and is on offer.
  logic                 marked_q, offered_q, over_q;
  logic [Width-1:0]     data_q;
  logic [RouteBits-1:0] route_q;
  count_t               ahead_q;
  logic                 push_w, pop_w, read_w;
  assign push_w = in_valid_i && in_channel_i == watched_i;
  assign read_w = pop_i[watched_i];
  assign pop_w  = read_w && !keep_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      marked_q  <= 1'b0;
      offered_q <= 1'b0;
      over_q    <= 1'b0;
      ahead_q   <= '0;
    end else begin
      if (push_w && mark_i && !marked_q) begin
        marked_q <= 1'b1;
        data_q   <= in_data_i;
        route_q  <= in_route_i;
        ahead_q  <= held[watched_i] - count_t'(pop_w);
      end else if (marked_q && !over_q && pop_w) begin
        ahead_q <= ahead_q - 1'b1;
        over_q  <= ahead_q == '0;
      end
      // The packet is offered from the cycle after its pop until the next pop, or for that cycle.
      if (marked_q && !over_q && read_w && ahead_q == '0) begin
        offered_q <= 1'b1;
      end else if (pop_i != '0 || !Holds) begin
        offered_q <= 1'b0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      if (marked_q && !over_q) begin
        not_lost: assert (ahead_q < held[watched_i]);
        if (ahead_q == '0) route_stays: assert (head_route[watched_i] == route_q);
      end
      if (offered_q) data_stays: assert (data == data_q && route == route_q);
    end
  end

endmodule
