// Streams from kernels: a queue for each port, and a reader that gives the lane the bytes of a segment.
//
// A stream is a sequence of bytes: where a kernel's words and packets end does not matter to the moves that take them.
// A segment comes out like one read from memory: it begins at byte 0 of a word, all words but its last are full. What
// is left of a word waits for the port's next segment. So a kernel may give words that are not full, but the queue
// holds Depth words, and a segment must fit: only the last word of a packet should not be full.
//
// Latency: from a kernel's word to the lane 4 cycles. Throughput: one word per cycle; a word that is not full and does
// not complete another takes a cycle by itself.

// Not every output of a part is needed here, nor every bit of a port's number.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_stream_source
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
#(
  parameter int unsigned StreamPorts = 2,
  parameter int unsigned DataBytes = 64,
  parameter int unsigned Depth = 256,
  localparam int unsigned OffsetWidth = $clog2(DataBytes)
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [StreamPorts-1:0]                  in_valid_i,
  output logic [StreamPorts-1:0]                  in_ready_o,
  input  logic [StreamPorts-1:0][DataBytes*8-1:0] in_data_i,
  input  logic [StreamPorts-1:0][DataBytes-1:0]   in_keep_i,     // from bit 0 up
  // What has come in.
  output logic [StreamPorts-1:0]                  filled_o,
  output logic [StreamPorts-1:0][OffsetWidth:0]   filled_bytes_o,

  // Segments, of bytes that have come in.
  input  logic           command_valid_i,
  output logic           command_ready_o,
  input  stream_port_t   command_port_i,
  input  segment_bytes_t command_bytes_i,             // at least 1
  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [DataBytes*8-1:0] out_data_o,
  output logic [DataBytes-1:0]   out_keep_o,
  output logic                   out_last_o
);

  localparam int unsigned PortWidth = StreamPorts > 1 ? $clog2(StreamPorts) : 1;
  typedef logic [PortWidth-1:0] port_t;
  typedef logic [OffsetWidth:0] count_t;
  typedef logic [DataBytes*8-1:0] word_t;
  localparam count_t Full = count_t'(DataBytes);

  // ------------------------------------------------------------------------------------------------ queues

  logic [StreamPorts-1:0] queue_valid, queue_take;
  count_t queue_bytes [StreamPorts];
  word_t queue_data [StreamPorts];

  for (genvar p = 0; p < int'(StreamPorts); p++) begin : gen_port
    word_t masked;
    logic room, enters;
    count_t bytes;
    // Without a word these are anything, which takes no gates and leaves a simulator nothing to compute.
    always_comb begin
      masked = 'x;
      bytes = 'x;
      if (in_valid_i[p]) begin
        for (int unsigned b = 0; b < DataBytes; b++) masked[8*b+:8] = in_keep_i[p][b] ? in_data_i[p][8*b+:8] : 8'd0;
        bytes = count_t'($countones(in_keep_i[p]));
      end
    end
    assign in_ready_o[p] = room;
    assign enters = in_valid_i[p] && room;
    assign filled_o[p] = enters;
    assign filled_bytes_o[p] = bytes;
    unisono_fifo #(.Width(DataBytes * 8 + OffsetWidth + 1), .Depth(Depth)) u_queue (
      .clk_i, .rst_ni, .in_valid_i(in_valid_i[p] && in_keep_i[p][0]), .in_ready_o(room), .in_data_i({bytes, masked}),
      .out_valid_o(queue_valid[p]), .out_ready_i(queue_take[p]), .out_data_o({queue_bytes[p], queue_data[p]}),
      .count_o()
    );
    `ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni && enters) begin
        assert ((in_keep_i[p] & (in_keep_i[p] + 1'b1)) == '0) else $error("a kernel's word has a gap");
      end
    end
    `endif
  end

  // ------------------------------------------------------------------------------------------------ reader

  logic command_valid, command_take;
  stream_port_t command_port;
  segment_bytes_t command_bytes;
  unisono_fifo #(.Width($bits(stream_port_t) + SegmentWidth), .Depth(8)) u_commands (
    .clk_i, .rst_ni, .in_valid_i(command_valid_i), .in_ready_o(command_ready_o),
    .in_data_i({command_port_i, command_bytes_i}),
    .out_valid_o(command_valid), .out_ready_i(command_take), .out_data_o({command_port, command_bytes}), .count_o()
  );

  // What is left of each port's last word, from byte 0 on; zeros behind it.
  (* ram_style = "distributed" *) word_t rest_q [StreamPorts];
  count_t rest_bytes_q [StreamPorts];

  segment_bytes_t done_d, done_q, left;
  port_t port;
  word_t rest, word, joined, source, remains;
  count_t held, comes, wanted, shift, remains_bytes;
  logic last, from_rest, there, enough, moves_on, gives;

  assign port = port_t'(command_port);
  assign left = command_bytes - done_q;
  assign last = left <= segment_bytes_t'(DataBytes);
  assign wanted = last ? count_t'(left) : Full;
  assign rest = held == '0 ? '0 : rest_q[port];
  assign held = rest_bytes_q[port];
  assign word = queue_data[port];
  assign comes = queue_bytes[port];

  // A word of the queue is needed unless the rest suffices.
  assign from_rest = held >= wanted;
  assign there = command_valid && (from_rest || queue_valid[port]);
  assign enough = from_rest || held + comes >= wanted;
  assign joined = rest | (from_rest ? '0 : word << {held, 3'd0});
  // What is then left is the upper part of the word that was last.
  assign source = from_rest ? rest : word;
  assign shift = from_rest ? wanted : wanted - held;
  assign remains = enough ? source >> {shift, 3'd0} : joined;
  assign remains_bytes = (from_rest ? held : held + comes) - (enough ? wanted : '0);

  logic out_valid_q, out_last_q;
  word_t out_data_q;
  logic [DataBytes-1:0] out_keep_q;

  assign moves_on = there && (!enough || !out_valid_q || out_ready_i);
  assign gives = moves_on && enough;
  assign command_take = gives && last;
  assign done_d = gives ? (last ? '0 : done_q + segment_bytes_t'(DataBytes)) : done_q;
  always_comb begin
    queue_take = '0;
    queue_take[port] = moves_on && !from_rest;
  end

  always_ff @(posedge clk_i) begin
    if (moves_on) rest_q[port] <= remains;
  end
  for (genvar p = 0; p < int'(StreamPorts); p++) begin : gen_rest
    always_ff @(posedge clk_i) begin
      if (!rst_ni) rest_bytes_q[p] <= '0;
      else if (moves_on && port == port_t'(p)) rest_bytes_q[p] <= remains_bytes;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q <= '0;
      out_valid_q <= 1'b0;
    end else begin
      done_q <= done_d;
      if (gives) out_valid_q <= 1'b1;
      else if (out_ready_i) out_valid_q <= 1'b0;
    end
    if (gives) begin
      for (int unsigned b = 0; b < DataBytes; b++) begin
        out_keep_q[b] <= wanted > count_t'(b);
        out_data_q[8*b+:8] <= wanted > count_t'(b) ? joined[8*b+:8] : 8'd0;
      end
      out_last_q <= last;
    end
  end

  assign out_valid_o = out_valid_q;
  assign out_data_o = out_data_q;
  assign out_keep_o = out_keep_q;
  assign out_last_o = out_last_q;

endmodule
