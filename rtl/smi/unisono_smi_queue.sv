// Queue of packets between two communication kernels: a FIFO for each channel, in one memory.
//
// A packet comes with the route that the reading kernel will take it on, looked up by who writes.
// Packets have one word or, with Words above 1, up to so many; the last one is marked. The head is
// shown when the whole packet has come; the route that counts is that of its first word, and its
// words are popped one after the other.
// The heads of all channels show their routes at once, from registers, so that the reader can choose
// one whose way is free; none of them holds up another. The packet itself is read one cycle after its
// pop. A queue that nobody writes to or reads from changes nothing, and costs a simulator nothing.
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
  // out_data_o and out_route_o hold until the next pop; if not, they are there for a cycle.
  parameter bit          Holds       = 1'b1,
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
  output logic [RouteBits-1:0]               out_route_o,
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

  localparam int unsigned HeadBits = RouteBits + 1;

  logic [Channels-1:0][PointerBits-1:0] wr_q, rd_q;
  // Words that are held, and of several words whole packets.
  logic [Channels-1:0][CountBits-1:0]   count_q, packets_q;
  logic [Channels-1:0][HeadBits-1:0]    head_q;
  logic [Channels-1:0]                  valid_q, room_q, push, leave;
  logic                                 live_q, last;

  assign leave = keep_i ? '0 : pop_i;

  assign last = Words == 1 || in_last_i;
  for (genvar c = 0; c < Channels; c++) begin : gen_channel
    assign push[c]         = in_valid_i && in_channel_i == ChannelBits'(c);
    assign head_route_o[c] = head_q[c][RouteBits-1:0];
    assign head_last_o[c]  = Words == 1 || head_q[c][RouteBits];
  end
  assign head_valid_o = valid_q;
  assign room_o       = room_q;

  always_ff @(posedge clk_i) begin
    live_q <= rst_ni;
    if (!rst_ni) begin
      count_q   <= '0;
      packets_q <= '0;
      valid_q   <= '0;
      room_q    <= '0;
      wr_q      <= '0;
      rd_q      <= '0;
    end else if (in_valid_i || pop_i != '0 || !live_q) begin
      for (int unsigned c = 0; c < Channels; c++) begin
        // What is next is known for each of the cases, so that a pop, which comes late, chooses alone.
        automatic logic whole = push[c] && last;
        automatic logic gone  = leave[c] && head_last_o[c];
        automatic logic [CountBits-1:0] packets = Words == 1 ? count_q[c] : packets_q[c];
        count_q[c]   <= count_q[c] + CountBits'(push[c]) - CountBits'(leave[c]);
        packets_q[c] <= Words == 1 ? '0 : packets + CountBits'(whole) - CountBits'(gone);
        valid_q[c]   <= whole || (valid_q[c] && !(gone && packets == CountBits'(1)));
        if (push[c] == leave[c]) begin
          room_q[c] <= 32'(count_q[c]) < Depth - Slack;
        end else if (push[c]) begin
          room_q[c] <= 32'(count_q[c]) + 1 < Depth - Slack;
        end else begin
          room_q[c] <= 32'(count_q[c]) <= Depth - Slack;
        end
        if (push[c]) begin
          wr_q[c] <= wr_q[c] + PointerBits'(1);
        end
        if (leave[c]) begin
          rd_q[c] <= rd_q[c] + PointerBits'(1);
        end
`ifndef SYNTHESIS
        assert (!push[c] || 32'(count_q[c]) < Depth) else $error("%m: written to without room");
        assert (!pop_i[c] || valid_q[c]) else $error("%m: read without a packet");
`endif
      end
    end
  end

  // The head of each channel, in a register: the next one of those that wait, or the one that comes.
  for (genvar c = 0; c < Channels; c++) begin : gen_routes
    (* ram_style = "distributed" *) logic [HeadBits-1:0] routes [Depth];
    always_ff @(posedge clk_i) begin
      if (push[c]) begin
        routes[wr_q[c]] <= {last, in_route_i};
      end
    end
    always_ff @(posedge clk_i) begin
      if (in_valid_i || pop_i != '0) begin
        if (leave[c] && count_q[c] > CountBits'(1)) begin
          head_q[c] <= routes[rd_q[c] + PointerBits'(1)];
        end else if (push[c] && (leave[c] || count_q[c] == '0)) begin
          head_q[c] <= {last, in_route_i};
        end
      end
    end
  end
  if (Words == 1) begin : gen_one_word
    logic unused_packets;
    assign unused_packets = ^packets_q;
  end

  localparam int unsigned AddressBits = ChannelBits + PointerBits;
  localparam int unsigned Places      = (1 << ChannelBits) * Depth;

  logic [AddressBits-1:0] wr_address, rd_address;

  always_comb begin
    rd_address = '0;
    for (int unsigned c = 0; c < Channels; c++) begin
      if (pop_i[c]) begin
        rd_address |= AddressBits'({ChannelBits'(c), rd_q[c]});
      end
    end
  end
  assign wr_address = Channels > 1 ? AddressBits'({in_channel_i, wr_q[in_channel_i]})
                                   : AddressBits'(wr_q[0]);

  if (Holds || Places > 64) begin : gen_ram
    unisono_ram_sdp #(
      .Width   (RouteBits + Width),
      .Depth   (Places),
      .RamStyle(Places > 64 ? "block" : "distributed")
    ) u_memory (
      .clk_i,
      .wr_en_i    (in_valid_i),
      .wr_addr_i  (wr_address),
      .wr_data_i  ({in_route_i, in_data_i}),
      .rd_en_i    (pop_i != '0),
      .rd_out_en_i(1'b1),
      .rd_addr_i  (rd_address),
      .rd_data_o  ({out_route_o, out_data_o})
    );
  end else begin : gen_luts
    // The address in the register, in the place of the word: the pop comes late.
    (* ram_style = "distributed" *) logic [RouteBits+Width-1:0] mem [Places];
    logic [AddressBits-1:0] rd_address_q;
    always_ff @(posedge clk_i) begin
      if (in_valid_i) begin
        mem[wr_address] <= {in_route_i, in_data_i};
      end
    end
    always_ff @(posedge clk_i) begin
      if (pop_i != '0) begin
        rd_address_q <= rd_address;
      end
    end
    assign {out_route_o, out_data_o} = mem[rd_address_q];
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && (in_valid_i || pop_i != '0)) begin
      assert ($onehot0(pop_i)) else $error("%m: two packets read at once");
      assert (!in_valid_i || 32'(in_channel_i) < Channels) else $error("%m: no such channel");
    end
  end
`endif

endmodule
