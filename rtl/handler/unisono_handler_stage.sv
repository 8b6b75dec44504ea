// One machine of a row, and what makes messages of the packets around it.
//
//   its slot's messages ─┐                                                 ┌─► leaves
//                        ├─► in turn ─► machine ─► whole packets, numbered ┤
//   the machine before ──┘                                                 └─► the next machine
//
// Items come and go (unisono_handler_ledger). What a function writes is a packet of the message, numbered from 0 on; more
// than 8192 bytes are several packets. What was written by a function that fails is dropped. Behind the last of a
// message goes one item that closes it, with its status: the first failure, here or before. Nothing runs for a message
// that has failed, or has no packets.
//
// A packet enters only when there is room for a close behind it, and the way on is to the next machine or out, so no
// stage waits for one before it.
//
// Latency beside that of the machine: 1 cycle in, 3 cycles out, from a packet's last word. Throughput: that of the
// machine, which is a word per cycle at most.

// verilator lint_off PINCONNECTEMPTY

module unisono_handler_stage
  import unisono_handler_pkg::*;
  import unisono_handler_station_pkg::*;
#(
  parameter int unsigned   Slot = 0,  // its number in the row
  parameter int unsigned   Messages = 16,  // of each slot, as the ledger has it
  parameter int unsigned   Queue = 256,  // words of written packets that wait: a power of two, at least 128
  parameter int unsigned   Columns = 16,  // of the machine, as what follows
  parameter int unsigned   Words = 1024,
  parameter int unsigned   MemoryBytes = 65536,
  parameter element_mask_t Elements = '1,
  parameter int unsigned   Banks = 16,
  localparam int unsigned  Ways = Slot == 0 ? 1 : 2,  // by which items come: its own messages, the machine before
  localparam int unsigned  PlaceBits = $clog2(MostMachines) + $clog2(Messages),  // slot of the message, place
  localparam int unsigned  UserBits = PlaceBits + $bits(about_t)
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,

  input  logic                            load_valid_i,
  output logic                            load_ready_o,
  input  logic [2:0]                      load_what_i,
  input  logic [31:0]                     load_address_i,
  input  logic [63:0]                     load_data_i,
  output logic                            load_read_valid_o,
  output logic [63:0]                     load_read_data_o,
  output logic                            loaded_o,
  output logic [1:0]                      refused_o,

  input  logic [Ways-1:0]                 in_valid_i,
  output logic [Ways-1:0]                 in_ready_o,
  input  logic [Ways-1:0][FrameBits-1:0]  in_data_i,
  input  logic [Ways-1:0][FrameBytes-1:0] in_keep_i,
  input  logic [Ways-1:0]                 in_last_i,
  input  logic [Ways-1:0][UserBits-1:0]   in_user_i,  // place, about_t

  output logic                            out_valid_o,
  input  logic                            out_ready_i,
  output frame_word_t                     out_data_o,
  output logic [FrameBytes-1:0]           out_keep_o,
  output logic                            out_last_o,
  output logic [UserBits-1:0]             out_user_o,

  output logic [31:0]                     counter_done_o,  // messages that went to their end
  output logic [31:0]                     counter_dropped_o,
  output logic [31:0]                     counter_failed_o,  // those that ended otherwise, here or before
  output logic [31:0]                     counter_outputs_o,  // packets
  output logic [31:0]                     counter_executed_o,  // instructions
  output status_t                         failure_o,  // the last function that failed
  output logic [15:0]                     failure_source_o,  // whose packet it had
  output logic [31:0]                     failure_tag_o,
  output logic                            busy_o
);

  localparam int unsigned Places = (Slot + 1) * Messages;
  localparam int unsigned ClosesDepth = 8;
  localparam int unsigned TakenBits = 3;

  typedef logic [$clog2(Places)-1:0] index_t;
  typedef logic [PlaceBits-1:0] place_t;
  typedef struct packed {
    logic [15:0] source;
    logic [15:0] ranks;
    logic [31:0] tag;
  } who_t;

  // ---------------------------------------------------------------- items to the machine
  logic item_valid, item_ready, item_last, fits, open_q, begins, failed_in, skip, write_status_in;
  frame_word_t item_data;
  logic [FrameBytes-1:0] item_keep;
  place_t item_place;
  about_t about;
  status_t status_in;
  unisono_stream_arbiter #(
    .Inputs   (Ways),
    .DataBytes(FrameBytes),
    .UserBits (UserBits)
  ) u_ways (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .in_data_i,
    .in_keep_i,
    .in_last_i,
    .in_user_i,
    .out_valid_o (item_valid),
    .out_ready_i (item_ready && fits),
    .out_data_o  (item_data),
    .out_keep_o  (item_keep),
    .out_last_o  (item_last),
    .out_user_o  ({item_place, about}),
    .out_source_o()
  );
  assign status_in = status_t'(item_data[StatusBits-1:0]);
  assign failed_in = about.closes && status_in.reason != ReasonDone;
  assign skip = about.closes && (failed_in || about.packets == '0);
  assign begins = item_valid && item_ready && fits && !open_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (item_valid && item_ready && fits) open_q <= !item_last;
  end

  // ---------------------------------------------------------------- the machine
  logic out_valid, out_ready, out_last, out_failed, outcome_valid, done_valid, done_last, done_failed;
  frame_word_t out_data;
  logic [FrameBytes-1:0] out_keep;
  index_t out_index, done_index;
  logic [1:0] outcome_function;
  logic [3:0] outcome_stop;
  logic [31:0] outcome_verdict, outcome_executed, outcome_tag, outcome_packet;
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0] outcome_source;
  // verilator lint_on UNUSEDSIGNAL
  logic [13:0] outcome_word;
  who_t item_who;
  unisono_handler #(
    .Columns    (Columns),
    .Words      (Words),
    .MemoryBytes(MemoryBytes),
    .Elements   (Elements),
    .Banks      (Banks),
    .Places     (Places)
  ) u_machine (
    .clk_i,
    .rst_ni,
    .load_valid_i,
    .load_ready_o,
    .load_what_i,
    .load_address_i,
    .load_data_i,
    .load_read_valid_o,
    .load_read_data_o,
    .loaded_o,
    .refused_o,
    .in_valid_i            (item_valid && fits),
    .in_ready_o            (item_ready),
    .in_data_i             (item_data),
    .in_keep_i             (about.closes ? '0 : item_keep),
    .in_last_i             (item_last),
    .in_packet_i           (about.closes ? about.packets - 24'd1 : about.packet),
    .in_packets_i          (25'(about.packets)),
    .in_source_i           (24'(item_who.source)),
    .in_ranks_i            (25'(item_who.ranks)),
    .in_tag_i              (item_who.tag),
    .in_place_i            (index_t'(item_place)),
    .in_closes_i           (about.closes),
    .in_skip_i             (skip),
    .out_valid_o           (out_valid),
    .out_ready_i           (out_ready),
    .out_data_o            (out_data),
    .out_keep_o            (out_keep),
    .out_last_o            (out_last),
    .out_failed_o          (out_failed),
    .out_place_o           (out_index),
    .outcome_valid_o       (outcome_valid),
    .outcome_ready_i       (1'b1),
    .outcome_function_o    (outcome_function),
    .outcome_stop_o        (outcome_stop),
    .outcome_verdict_o     (outcome_verdict),
    .outcome_word_o        (outcome_word),
    .outcome_executed_o    (outcome_executed),
    .outcome_output_bytes_o(),
    .outcome_source_o      (outcome_source),
    .outcome_tag_o         (outcome_tag),
    .outcome_packet_o      (outcome_packet),
    .done_valid_o          (done_valid),
    .done_place_o          (done_index),
    .done_last_o           (done_last),
    .done_failed_o         (done_failed),
    .busy_o
  );

  // ---------------------------------------------------------------- what is known of messages
  (* ram_style = "distributed" *) who_t whos_q [Places];
  (* ram_style = "distributed" *) status_t statuses_q [Places];
  (* ram_style = "distributed" *) logic [23:0] counts_q [Places];  // of packets written, if `counted_q`
  logic [Places-1:0] counted_q, failed_q;
  status_t status_done, status_out;
  // An item that closes knows nothing of its message's sender.
  assign item_who = about.closes ? whos_q[index_t'(item_place)] : '{about.source, about.ranks, about.tag};
  assign write_status_in = begins && failed_in && !failed_q[index_t'(item_place)];
  always_comb begin
    status_done = '0;
    status_done.reason = outcome_stop != '0 ? ReasonStopped + 8'(outcome_stop)
                       : outcome_verdict == 32'd1 ? ReasonDropped : ReasonFailed;
    status_done.slot = 8'(Slot);
    status_done.function_ = 8'(outcome_function);
    status_done.verdict = outcome_verdict;
    status_done.word = 32'(outcome_word);
    status_done.packet = outcome_packet;
  end

  // ---------------------------------------------------------------- ends of messages, in their turn among packets
  typedef logic [TakenBits-1:0] taken_t;
  logic close_valid, close, queue_ready, unused_closes_ready;
  index_t close_index;
  taken_t taken_q, close_taken;
  logic [$clog2(ClosesDepth+1)-1:0] closes_held;
  unisono_fifo #(
    .Width($bits(index_t) + TakenBits),
    .Depth(ClosesDepth)
  ) u_closes (
    .clk_i,
    .rst_ni,
    .in_valid_i (done_valid && done_last),
    .in_ready_o (unused_closes_ready),
    .in_data_i  ({done_index, taken_q + taken_t'(out_valid && out_last)}),
    .out_valid_o(close_valid),
    .out_ready_i(close && queue_ready),
    .out_data_o ({close_index, close_taken}),
    .count_o    (closes_held)
  );
  // Two packets are in the machine, and one may just be done. Two statuses are not written at once.
  assign fits = open_q || (32'(closes_held) + 4 <= ClosesDepth && !(done_valid && done_failed));

  // ---------------------------------------------------------------- packets that were written
  logic [6:0] words_q;  // of this packet
  logic inside_q, queue_valid, last, drop, unused_dropped;
  index_t index;
  logic [23:0] count;
  about_t about_out;
  place_t place_out;
  // Packets of the machine that have been taken say whose turn it is: those before the end, or what is behind it.
  assign close = close_valid && !inside_q && close_taken == taken_q;
  assign index = close ? close_index : out_index;
  assign last = close || out_last || words_q == 7'(MostPacketWords - 1);
  assign drop = !close && out_last && out_failed;
  assign queue_valid = close || out_valid;
  assign out_ready = queue_ready && !close;
  assign count = counted_q[index] ? counts_q[index] : '0;
  assign status_out = failed_q[index] ? statuses_q[index] : '0;
  assign place_out = place_t'(index);
  always_comb begin
    about_out.closes = close;
    about_out.packet = close ? '0 : count;
    about_out.packets = close ? count : '0;
    {about_out.source, about_out.ranks, about_out.tag} = whos_q[index];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      taken_q <= '0;
      words_q <= '0;
      inside_q <= 1'b0;
      counted_q <= '0;
      failed_q <= '0;
    end else begin
      if (out_valid && out_ready) begin
        inside_q <= !out_last;
        words_q <= last ? '0 : words_q + 7'd1;
        taken_q <= taken_q + taken_t'(out_last);
      end
      if (queue_valid && queue_ready && last) counted_q[index] <= !close && (counted_q[index] || !drop);
      if (close && queue_ready) failed_q[index] <= 1'b0;
      if (done_valid && done_failed) failed_q[done_index] <= 1'b1;
      else if (write_status_in) failed_q[index_t'(item_place)] <= 1'b1;
    end
    if (queue_valid && queue_ready && last && !drop) counts_q[index] <= count + 24'd1;
    if (begins && !about.closes) whos_q[index_t'(item_place)] <= item_who;
    if (done_valid && done_failed) statuses_q[done_index] <= status_done;
    else if (write_status_in) statuses_q[index_t'(item_place)] <= status_in;
  end

  unisono_stream_packet_fifo #(
    .DataBytes(FrameBytes),
    .UserBits (UserBits),
    .Depth    (Queue)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i (queue_valid),
    .in_ready_o (queue_ready),
    .in_data_i  (close ? FrameBits'(status_out) : out_data),
    .in_keep_i  (close ? '0 : out_keep),
    .in_last_i  (last),
    .in_user_i  ({place_out, about_out}),
    .in_drop_i  (drop),
    .out_valid_o,
    .out_ready_i,
    .out_data_o,
    .out_keep_o,
    .out_last_o,
    .out_user_o,
    .dropped_o  (unused_dropped)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      counter_done_o <= '0;
      counter_dropped_o <= '0;
      counter_failed_o <= '0;
      counter_outputs_o <= '0;
      counter_executed_o <= '0;
    end else begin
      if (close && queue_ready) begin
        if (status_out.reason == ReasonDone) counter_done_o <= counter_done_o + 32'd1;
        else if (status_out.reason == ReasonDropped) counter_dropped_o <= counter_dropped_o + 32'd1;
        else counter_failed_o <= counter_failed_o + 32'd1;
      end
      counter_outputs_o <= counter_outputs_o + 32'(out_valid && out_ready && last && !drop);
      if (outcome_valid) counter_executed_o <= counter_executed_o + outcome_executed;
    end
    if (done_valid && done_failed && outcome_verdict != 32'd1) begin
      failure_o <= status_done;
      failure_source_o <= outcome_source[15:0];
      failure_tag_o <= outcome_tag;
    end
    if (!rst_ni) failure_o <= '0;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && done_valid && done_last) begin
      assert (unused_closes_ready) else $error("%m: no room for the end of a message");
    end
    if (rst_ni && item_valid) assert (32'(item_place) < Places) else $error("%m: there is no such place");
  end
`else
  logic unused;
  assign unused = unused_closes_ready;
`endif

endmodule
