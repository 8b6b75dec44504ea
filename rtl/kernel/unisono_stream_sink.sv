// Streams to kernels: the lane's results, packed into words, and a queue for each port.
//
// A move's result is a packet: its words are full, but for the last one, whose `last` is set, however the engine has
// cut the move. If a move does not end (its call has failed), its packet is ended when the next one begins: `cut` is
// set in that word, whose `keep` may be 0. The gate has seen to it that there is room for all that comes.
//
// Latency: from the lane to a kernel 4 cycles. Throughput: one word per cycle; one more for a move whose segments leave
// a part of a word at its end.

// Not every output of a part is needed here, nor every bit of a port's number.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_stream_sink
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

  input  logic                   in_valid_i,
  output logic                   in_ready_o,
  input  logic [DataBytes*8-1:0] in_data_i,
  input  logic [DataBytes-1:0]   in_keep_i,
  input  logic                   in_last_i,          // of a segment
  input  stream_port_t           in_port_i,
  input  logic                   in_starts_i,        // the segment is the first of its move
  input  logic                   in_ends_i,          // or the last

  output logic [StreamPorts-1:0]                  out_valid_o,
  input  logic [StreamPorts-1:0]                  out_ready_i,
  output logic [StreamPorts-1:0][DataBytes*8-1:0] out_data_o,
  output logic [StreamPorts-1:0][DataBytes-1:0]   out_keep_o,
  output logic [StreamPorts-1:0]                  out_last_o,
  output logic [StreamPorts-1:0]                  out_cut_o,
  output logic [StreamPorts-1:0]                  drained_o
);

  localparam int unsigned PortWidth = StreamPorts > 1 ? $clog2(StreamPorts) : 1;
  typedef logic [PortWidth-1:0] port_t;
  typedef logic [OffsetWidth:0] count_t;
  typedef logic [DataBytes*8-1:0] word_t;
  localparam count_t Full = count_t'(DataBytes);

  typedef struct packed {
    logic cut;
    logic last;
    count_t bytes;
    word_t data;
  } item_t;

  // The part of a word that each port has so far; zeros behind it.
  (* ram_style = "distributed" *) word_t part_q [StreamPorts];
  count_t part_bytes_q [StreamPorts];
  logic [StreamPorts-1:0] open_q;

  port_t port, flush_port_q, port_now;
  word_t part, masked, joined, remains;
  count_t held, comes, total, remains_bytes;
  logic middle_q, flush_q, cuts, takes, full, ends, emits, empties, changes;
  item_t item;

  assign port = port_t'(in_port_i);
  assign port_now = flush_q ? flush_port_q : port;
  assign part = held == '0 ? '0 : part_q[port_now];
  assign held = part_bytes_q[port_now];
  assign cuts = !flush_q && in_valid_i && in_starts_i && !middle_q && open_q[port];
  assign in_ready_o = !flush_q && !(in_starts_i && !middle_q && open_q[port]);
  assign takes = in_valid_i && in_ready_o;

  // Without a word this is anything, and so is keep below: no gates, and nothing for a simulator to compute.
  always_comb begin
    masked = 'x;
    if (in_valid_i) begin
      for (int unsigned b = 0; b < DataBytes; b++) masked[8*b+:8] = in_keep_i[b] ? in_data_i[8*b+:8] : 8'd0;
    end
  end
  assign comes = count_t'($countones(in_keep_i));
  assign total = held + comes;
  assign full = total >= Full;
  assign joined = part | (masked << {held, 3'd0});
  assign remains = full ? masked >> {Full - held, 3'd0} : joined;
  assign remains_bytes = full ? total - Full : total;
  assign ends = in_last_i && in_ends_i;

  // A full word leaves, and the last one; what is then left leaves in the cycle after.
  always_comb begin
    emits = 1'b0;
    item = '{cut: 1'b0, last: 1'b0, bytes: held, data: part};
    if (flush_q) begin
      emits = 1'b1;
      item.last = 1'b1;
    end else if (cuts) begin
      emits = 1'b1;
      item.last = 1'b1;
      item.cut = 1'b1;
    end else if (takes) begin
      emits = full || ends;
      item.data = joined;
      item.bytes = full ? Full : total;
      item.last = ends && (!full || remains_bytes == '0);
    end
  end
  assign empties = flush_q || cuts || (takes && ends && !full);
  assign changes = flush_q || cuts || takes;

  always_ff @(posedge clk_i) begin
    if (changes) part_q[port_now] <= remains;
  end
  for (genvar p = 0; p < int'(StreamPorts); p++) begin : gen_part
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        part_bytes_q[p] <= '0;
        open_q[p] <= 1'b0;
      end else if (changes && port_now == port_t'(p)) begin
        part_bytes_q[p] <= empties ? '0 : remains_bytes;
        open_q[p] <= !(flush_q || cuts || (takes && ends));
      end
    end
  end

  logic emits_q;
  port_t emits_port_q;
  item_t item_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      middle_q <= 1'b0;
      flush_q <= 1'b0;
      flush_port_q <= '0;
      emits_q <= 1'b0;
    end else begin
      if (takes) middle_q <= !in_last_i;
      flush_q <= takes && ends && full && remains_bytes != '0;
      if (takes) flush_port_q <= port;
      emits_q <= emits;
    end
    emits_port_q <= port_now;
    item_q <= item;
  end

  logic [StreamPorts-1:0] room;
  for (genvar p = 0; p < int'(StreamPorts); p++) begin : gen_port
    item_t head;
    unisono_fifo #(.Width($bits(item_t)), .Depth(Depth)) u_queue (
      .clk_i, .rst_ni, .in_valid_i(emits_q && emits_port_q == port_t'(p)), .in_ready_o(room[p]), .in_data_i(item_q),
      .out_valid_o(out_valid_o[p]), .out_ready_i(out_ready_i[p]), .out_data_o(head), .count_o()
    );
    assign out_data_o[p] = head.data;
    assign out_last_o[p] = head.last;
    assign out_cut_o[p] = head.cut;
    assign drained_o[p] = out_valid_o[p] && out_ready_i[p];
    always_comb begin
      out_keep_o[p] = 'x;
      if (out_valid_o[p]) begin
        for (int unsigned b = 0; b < DataBytes; b++) out_keep_o[p][b] = head.bytes > count_t'(b);
      end
    end
  end

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) assert (!emits_q || room[emits_port_q]) else $error("a result came for a queue without room");
  end
  `endif

endmodule
