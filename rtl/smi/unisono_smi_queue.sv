// Queue of packets between two communication kernels: a FIFO for each channel, in one memory.
//
// A packet comes with the route that the reading kernel will take it on, looked up by who writes.
// Packets have one word or, with Words above 1, up to so many; the last one is marked. The head is
// shown when the whole packet has come; the route that counts is that of its first word, and its
// words are popped one after the other.
// The heads of all channels show their routes at once, so that the reader can choose one whose way
// is free; none of them holds up another. The packet itself is read one cycle after its pop.
//
// Latency: 1 cycle from a write to the head, 1 more from pop_i to out_data_o. Throughput: a write
// and a pop per cycle. Room is told with Slack packets to spare, for those that a writer has already
// decided on when it looks: room_o promises a place for one more packet and Slack before it. So of
// Depth places a channel may use all, but a writer that looks every cycle leaves up to Slack free.

module unisono_smi_queue #(
  parameter int unsigned Width       = 256,
  parameter int unsigned RouteBits   = 4,
  parameter int unsigned Channels    = 2,
  // Places of each channel, a power of two.
  parameter int unsigned Depth       = 16,
  parameter int unsigned Slack       = 2,
  // Most words of a packet.
  parameter int unsigned Words       = 1,
  localparam int unsigned ChannelBits = Channels > 1 ? $clog2(Channels) : 1
) (
  input  logic                               clk_i,
  input  logic                               rst_ni,

  input  logic                               in_valid_i,
  input  logic [ChannelBits-1:0]             in_channel_i,
  input  logic [RouteBits-1:0]               in_route_i,
  // The packet's last word; without meaning where a packet is a word.
  input  logic                               in_last_i,
  input  logic [Width-1:0]                   in_data_i,
  output logic [Channels-1:0]                room_o,

  output logic [Channels-1:0]                head_valid_o,
  output logic [Channels-1:0][RouteBits-1:0] head_route_o,
  output logic [Channels-1:0]                head_last_o,
  // At most one bit, of a channel that has a head. With keep_i the head is read, and stays.
  input  logic [Channels-1:0]                pop_i,
  input  logic                               keep_i,
  // Holds until the next pop.
  output logic [Width-1:0]                   out_data_o
);

  if (Depth < Slack + 2 || (Depth & (Depth - 1)) != 0) begin : gen_bad_depth
    $error("unisono_smi_queue: Depth must be a power of two of at least Slack + 2");
  end
  if (Words == 0 || Words > Depth) begin : gen_bad_words
    $error("unisono_smi_queue: Words must be 1 to Depth");
  end

  localparam int unsigned PointerBits = $clog2(Depth);
  localparam int unsigned CountBits   = $clog2(Depth + 1);

  logic [Channels-1:0][PointerBits-1:0] wr_q, rd_q;
  logic [Channels-1:0]                  push, leave;
  logic                                 last;

  assign leave = keep_i ? '0 : pop_i;

  assign last = Words == 1 || in_last_i;

  for (genvar c = 0; c < Channels; c++) begin : gen_channel
    logic [CountBits-1:0] count_d, count_q;
    // Whole packets.
    logic [CountBits-1:0] packets_d, packets_q;
    logic                 valid_q, room_q, whole, gone;

    assign push[c] = in_valid_i && in_channel_i == ChannelBits'(c);

    always_comb begin
      count_d = count_q;
      if (push[c] && !leave[c]) begin
        count_d = count_q + CountBits'(1);
      end else if (!push[c] && leave[c]) begin
        count_d = count_q - CountBits'(1);
      end
    end

    assign whole = push[c] && last;
    assign gone  = leave[c] && head_last_o[c];
    always_comb begin
      packets_d = packets_q;
      if (whole && !gone) begin
        packets_d = packets_q + CountBits'(1);
      end else if (!whole && gone) begin
        packets_d = packets_q - CountBits'(1);
      end
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        count_q   <= '0;
        packets_q <= '0;
        valid_q   <= 1'b0;
        room_q    <= 1'b0;
        wr_q[c]   <= '0;
        rd_q[c]   <= '0;
      end else begin
        count_q   <= count_d;
        packets_q <= packets_d;
        valid_q   <= packets_d != '0;
        room_q    <= 32'(count_d) < Depth - Slack;
        if (push[c]) begin
          wr_q[c] <= wr_q[c] + PointerBits'(1);
        end
        if (leave[c]) begin
          rd_q[c] <= rd_q[c] + PointerBits'(1);
        end
      end
    end

    (* ram_style = "distributed" *) logic [RouteBits:0] routes [Depth];
    always_ff @(posedge clk_i) begin
      if (push[c]) begin
        routes[wr_q[c]] <= {last, in_route_i};
      end
    end

    logic stored_last;
    assign head_valid_o[c] = valid_q;
    assign {stored_last, head_route_o[c]} = routes[rd_q[c]];
    assign head_last_o[c]  = Words == 1 || stored_last;
    assign room_o[c]       = room_q;

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        assert (!push[c] || 32'(count_q) < Depth) else $error("%m: written to without room");
        assert (!pop_i[c] || valid_q) else $error("%m: read without a packet");
      end
    end
`endif
  end

  localparam int unsigned AddressBits = ChannelBits + PointerBits;
  localparam int unsigned Places      = (1 << ChannelBits) * Depth;

  logic [AddressBits-1:0] wr_address, rd_address;
  logic [ChannelBits-1:0] rd_channel;

  always_comb begin
    rd_channel = '0;
    for (int unsigned c = 0; c < Channels; c++) begin
      if (pop_i[c]) begin
        rd_channel |= ChannelBits'(c);
      end
    end
  end

  if (Channels > 1) begin : gen_addresses
    assign wr_address = {in_channel_i, wr_q[in_channel_i]};
    assign rd_address = {rd_channel, rd_q[rd_channel]};
  end else begin : gen_address
    assign wr_address = {1'b0, wr_q[0]};
    assign rd_address = {1'b0, rd_q[0]};
    logic unused_channel;
    assign unused_channel = ^rd_channel;
  end

  unisono_ram_sdp #(
    .Width   (Width),
    .Depth   (Places),
    .RamStyle(Places > 64 ? "block" : "distributed")
  ) u_memory (
    .clk_i,
    .wr_en_i    (in_valid_i),
    .wr_addr_i  (wr_address),
    .wr_data_i  (in_data_i),
    .rd_en_i    (pop_i != '0),
    .rd_out_en_i(1'b1),
    .rd_addr_i  (rd_address),
    .rd_data_o  (out_data_o)
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert ($onehot0(pop_i)) else $error("%m: two packets read at once");
      assert (!in_valid_i || 32'(in_channel_i) < Channels) else $error("%m: no such channel");
    end
  end
`endif

endmodule
