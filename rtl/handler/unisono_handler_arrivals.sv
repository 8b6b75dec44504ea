// Frames come in: one at a time from all ports, checked, and kept for the machine of their slot.
//
// A frame begins only when its slot's queue has room for the longest one, so that none ever stops on its way, and a
// slot whose machine is slow refuses its own frames alone. `in_ready_o` follows what is offered: a link may offer
// another frame as long as none has begun.
//
// A frame is dropped and counted by the first of these that is wrong: its headers, its length, its checksums. Sound
// ones leave whole, headers first.
//
// Latency: 8 cycles from a frame's last word to its first one on offer. Throughput: a word per cycle, and a cycle
// between two frames.
module unisono_handler_arrivals
  import unisono_spec_pkg::*;
  import unisono_handler_station_pkg::*;
#(
  parameter int unsigned Format = 1,    // format_e
  parameter int unsigned Ports = 1,
  parameter int unsigned Machines = 1,  // slots
  parameter int unsigned Queue = 512    // words that wait for each: a power of two, at least 256
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  input  logic [Ports-1:0]                  in_valid_i,
  output logic [Ports-1:0]                  in_ready_o,
  input  logic [Ports-1:0][FrameBits-1:0]   in_data_i,
  input  logic [Ports-1:0][FrameBytes-1:0]  in_keep_i,
  input  logic [Ports-1:0]                  in_last_i,
  input  logic [Ports-1:0]                  in_bad_i,  // with last: the frame is damaged

  output logic [Machines-1:0]                 out_valid_o,
  input  logic [Machines-1:0]                 out_ready_i,
  output logic [Machines-1:0][FrameBits-1:0]  out_data_o,
  output logic [Machines-1:0][FrameBytes-1:0] out_keep_o,
  output logic [Machines-1:0]                 out_last_o,

  output logic [31:0]                       counter_sound_o,
  output logic [31:0]                       counter_bad_header_o,
  output logic [31:0]                       counter_bad_length_o,
  output logic [31:0]                       counter_bad_checksum_o
);

  localparam int unsigned MostWords = MostPacketWords + 1;  // of a frame; one more if it is too long
  localparam int unsigned HeldBits = $clog2(Queue + 1);
  localparam int unsigned PortBits = Ports > 1 ? $clog2(Ports) : 1;

  if (Queue < 256 || 2 ** $clog2(Queue) != Queue) begin : gen_bad_queue
    $error("unisono_handler_arrivals: Queue must be a power of two, at least 256");
  end
  if (Machines < 1 || Machines > MostMachines || Ports < 1) begin : gen_bad_machines
    $error("unisono_handler_arrivals: Machines must be 1 to %0d, and there must be a port", MostMachines);
  end

  // ---------------------------------------------------------------- which frame comes
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic [7:0] slot_of(frame_word_t word);
    header_t h;
    packet_header_t p;
    h = word;
    p = word[FrameBits-1:8*PacketHeaderByte];
    return Format == 32'(FormatEngine) ? h.port[7:0] : p.slot;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  logic [Machines-1:0][HeldBits-1:0] held_q;  // words from the port on
  logic [Machines-1:0] room;
  logic [Ports-1:0] wants, next;
  logic [PortBits-1:0] next_index, holder_q;
  logic busy_q, choose, begun, same;
  logic [7:0] slot_q, number_q;
  for (genvar m = 0; m < int'(Machines); m++) begin : gen_room
    assign room[m] = 32'(held_q[m]) + MostWords + 1 <= Queue;
  end
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_wants
    always_comb begin
      wants[p] = in_valid_i[p];
      for (int unsigned m = 0; m < Machines; m++) if (slot_of(in_data_i[p]) == 8'(m) && !room[m]) wants[p] = 1'b0;
    end
    assign in_ready_o[p] = busy_q && holder_q == PortBits'(p) && same;
  end
  unisono_round_robin #(
    .Requests(Ports)
  ) u_turns (
    .clk_i,
    .rst_ni,
    .request_i(wants),
    .advance_i(choose),
    .grant_o  (next),
    .index_o  (next_index)
  );
  assign choose = !busy_q && next != '0;
  // The link may offer another frame in the cycle after; then that one is chosen anew.
  assign begun = number_q != '0;
  assign same = begun || slot_of(in_data_i[holder_q]) == slot_q;

  // ---------------------------------------------------------------- words on their way to the queues
  typedef struct packed {
    logic                  valid;
    logic                  push;  // what is too long is not kept, but for its last word
    logic                  first;
    logic                  last;
    logic                  bad;
    logic [7:0]            slot;
    logic [7:0]            number;  // of the word in its frame; it stops at MostWords
    logic [FrameBytes-1:0] keep;
    frame_word_t           data;
  } way_word_t;

  // verilator lint_off UNUSEDSIGNAL
  way_word_t word, word1_q, word2_q, word3_q, word4_q;
  // verilator lint_on UNUSEDSIGNAL
  always_comb begin
    word.valid = busy_q && in_valid_i[holder_q] && same;
    word.first = !begun;
    word.last = in_last_i[holder_q];
    word.bad = in_bad_i[holder_q] && word.last;
    word.push = 32'(number_q) < MostWords || word.last;
    word.slot = slot_q;
    word.number = number_q;
    word.keep = in_keep_i[holder_q];
    word.data = in_data_i[holder_q];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      number_q <= '0;
    end else begin
      if (choose) busy_q <= 1'b1;
      else if (word.valid ? word.last : !begun) busy_q <= 1'b0;
      if (word.valid) number_q <= word.last ? '0 : 32'(number_q) < MostWords ? number_q + 8'd1 : number_q;
    end
    if (choose) begin
      holder_q <= next_index;
      slot_q <= slot_of(in_data_i[next_index]);
    end
    word1_q <= word;
    word2_q <= word1_q;
    word3_q <= word2_q;
    word4_q <= word3_q;
    if (!rst_ni) begin
      word1_q.valid <= 1'b0;
      word2_q.valid <= 1'b0;
      word3_q.valid <= 1'b0;
      word4_q.valid <= 1'b0;
    end
  end

  // ---------------------------------------------------------------- what is wrong
  // What a first word says holds for the words behind it. Each stage has its own: two frames may be under way.
  // verilator lint_off UNUSEDSIGNAL
  facts_t facts;
  // verilator lint_on UNUSEDSIGNAL
  logic [13:0] bytes_q, bytes;
  logic [14:0] came2_q, said2_q;  // bytes of the frame
  logic header2_q, header3_q, header4_q, length3_q, length4_q, sum3_q, sum4_q;
  logic none3_q, none4_q;
  logic [15:0] udp_bytes4_q;
  logic [31:0] crc;
  logic sum_valid;
  logic [31:0] ip_low2_q, ip_high2_q;
  logic [15:0] sum;
  assign facts = facts_of(format_e'(Format), word1_q.data);
  assign bytes = word1_q.first ? facts.bytes : bytes_q;
  always_ff @(posedge clk_i) begin
    if (word1_q.valid && word1_q.first) begin
      bytes_q <= facts.bytes;
      header2_q <= !facts.sound || word1_q.keep != '1 || 32'(word1_q.slot) >= Machines;
      ip_low2_q <= sum_of(word1_q.data, 14, 24);
      ip_high2_q <= sum_of(word1_q.data, 24, 34);
    end
    came2_q <= {1'b0, word1_q.number, 6'd0} + 15'(kept_of(word1_q.keep));
    said2_q <= 15'(bytes) + 15'(FrameBytes);
    header3_q <= header2_q;
    length3_q <= word2_q.last && came2_q != said2_q;
    if (word2_q.valid && word2_q.first) begin
      // The sum of IPv4's header is 0xffff if it is right.
      sum3_q <= Format == 32'(FormatUdp) && folded(ip_low2_q + ip_high2_q) != '1;
      none3_q <= word2_q.data[8*40+:16] == '0;
    end
    header4_q <= header3_q;
    length4_q <= length3_q;
    if (word3_q.valid && word3_q.first) begin
      sum4_q <= sum3_q || (Format == 32'(FormatEngine) && crc != word3_q.data[FrameBits-1-:32]);
      none4_q <= none3_q;
      udp_bytes4_q <= word3_q.data[8*38+:16];
    end
  end
  unisono_crc32c u_crc (
    .clk_i,
    .valid_i(Format == 32'(FormatEngine) && word1_q.valid && word1_q.first),
    .data_i (word1_q.data[479:0]),
    .crc_o  (crc)
  );
  unisono_handler_checksum u_sum (
    .clk_i,
    .rst_ni,
    .valid_i(word.valid),
    .data_i (word.data),
    .keep_i (word.first ? word.keep & ~FrameBytes'(26'h3ff_ffff) : word.keep),
    .last_i (word.last),
    .valid_o(sum_valid),
    .sum_o  (sum)
  );

  // A UDP checksum of 0 says that there is none.
  logic ends, bad_sum, bad;
  assign ends = word4_q.valid && word4_q.last;
  assign bad_sum = sum4_q || word4_q.bad
                   || (Format == 32'(FormatUdp) && !none4_q
                       && folded(32'(sum) + 32'h1100 + 32'(udp_bytes4_q)) != '1);
  assign bad = header4_q || length4_q || bad_sum;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      counter_sound_o <= '0;
      counter_bad_header_o <= '0;
      counter_bad_length_o <= '0;
      counter_bad_checksum_o <= '0;
    end else if (ends) begin
      if (header4_q) counter_bad_header_o <= counter_bad_header_o + 32'd1;
      else if (length4_q) counter_bad_length_o <= counter_bad_length_o + 32'd1;
      else if (bad_sum) counter_bad_checksum_o <= counter_bad_checksum_o + 32'd1;
      else counter_sound_o <= counter_sound_o + 32'd1;
    end
  end

  // ---------------------------------------------------------------- queues
  logic [Machines-1:0] queue_ready;
  for (genvar m = 0; m < int'(Machines); m++) begin : gen_queue
    logic push, pop, mine;
    logic [HeldBits-1:0] words_q, words;  // of the frame that comes into the queue
    logic unused_user, unused_dropped;
    assign mine = word4_q.valid && word4_q.push && word4_q.slot == 8'(m);
    assign push = word.valid && word.push && word.slot == 8'(m);
    assign pop = out_valid_o[m] && out_ready_i[m];
    assign words = words_q + HeldBits'(1);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        words_q <= '0;
        held_q[m] <= '0;
      end else begin
        if (mine) words_q <= word4_q.last ? '0 : words;
        held_q[m] <= held_q[m] + HeldBits'(push) - HeldBits'(pop) - (mine && ends && bad ? words : '0);
      end
    end
    unisono_stream_packet_fifo #(
      .DataBytes(FrameBytes),
      .Depth    (Queue)
    ) u_queue (
      .clk_i,
      .rst_ni,
      .in_valid_i (mine),
      .in_ready_o (queue_ready[m]),
      .in_data_i  (word4_q.data),
      .in_keep_i  (word4_q.keep),
      .in_last_i  (word4_q.last),
      .in_user_i  (1'b0),
      .in_drop_i  (bad),
      .out_valid_o(out_valid_o[m]),
      .out_ready_i(out_ready_i[m]),
      .out_data_o (out_data_o[m]),
      .out_keep_o (out_keep_o[m]),
      .out_last_o (out_last_o[m]),
      .out_user_o (unused_user),
      .dropped_o  (unused_dropped)
    );
`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni && mine) assert (queue_ready[m]) else $error("%m: a frame has begun for which there is no room");
    end
`endif
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && ends) assert (sum_valid) else $error("%m: a frame ends before its sum");
  end
`else
  logic unused;
  assign unused = sum_valid ^ ^queue_ready;
`endif

endmodule
