// Compute lane: carries out jobs, in order, one word per cycle.
//
// A job reads op0 from memory, takes op1 from memory or from the head of Rx, applies a function, and delivers the
// result to memory, to a peer, or both. Jobs that fold messages of several peers follow one another through the
// accumulator: each leaves its words there, the next takes them as op0. Reads of the next jobs begin while earlier ones are under way (up to
// QueueDepth). The dispatcher has seen to it that every job can end by itself (rule 1 of docs/rtl/engine.md), so
// nothing here waits for a peer.
//
// Several messages of fp16 or bf16 that are added or multiplied round once, at the end: their partial results are fp32,
// two words for one, and such a job takes two cycles a word.
//
// Latency: QueueDepth does not add any; from op1's word to the result 2 + PluginLatency cycles, 5 more if it is rounded;
// none if no function changes the word and the plugins are empty. A job that sends is announced to Tx in the cycle in
// which it comes, if no other one is before it.
// Throughput: one word per cycle; jobs of one word follow each other every cycle, those that send every second one.
// Between jobs that are rounded are 5 cycles.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_compute_lane
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_plugin_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned QueueDepth = 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic job_valid_i,
  output logic job_ready_o,
  input  job_t job_i,

  // op0: command to a reader, and what it reads.
  output logic           op0_command_valid_o,
  input  logic           op0_command_ready_i,
  output address_t       op0_command_address_o,
  output segment_bytes_t op0_command_bytes_o,
  input  logic                   op0_valid_i,
  output logic                   op0_ready_o,
  input  logic [DataBytes*8-1:0] op0_data_i,
  input  logic [DataBytes-1:0]   op0_keep_i,
  input  logic                   op0_last_i,
  input  logic                   op0_error_i,      // of any word

  // op0 from a kernel's stream: all of a segment stands there.
  output logic           source_command_valid_o,
  input  logic           source_command_ready_i,
  output stream_port_t   source_command_port_o,
  output segment_bytes_t source_command_bytes_o,
  input  logic                   source_valid_i,
  output logic                   source_ready_o,
  input  logic [DataBytes*8-1:0] source_data_i,
  input  logic [DataBytes-1:0]   source_keep_i,
  input  logic                   source_last_i,

  // op1 from memory.
  output logic           op1_command_valid_o,
  input  logic           op1_command_ready_i,
  output address_t       op1_command_address_o,
  output segment_bytes_t op1_command_bytes_o,
  input  logic                   op1_valid_i,
  output logic                   op1_ready_o,
  input  logic [DataBytes*8-1:0] op1_data_i,
  input  logic [DataBytes-1:0]   op1_keep_i,
  input  logic                   op1_last_i,
  input  logic                   op1_error_i,

  // op1 from the head of Rx.
  input  logic                   bypass_valid_i,
  output logic                   bypass_ready_o,
  input  logic [DataBytes*8-1:0] bypass_data_i,
  input  logic [DataBytes-1:0]   bypass_keep_i,
  input  logic                   bypass_last_i,

  // The plugins: operands out, result in, in order.
  output logic                   plugin_valid_o,
  input  logic                   plugin_ready_i,
  output logic [DataBytes*8-1:0] plugin_op0_o,
  output logic [DataBytes*8-1:0] plugin_op1_o,
  output logic                   plugin_use0_o,
  output logic                   plugin_use1_o,
  output func_e                  plugin_func_o,
  output datatype_e              plugin_dtype_o,
  output logic                   plugin_swap_o,
  output logic [DataBytes-1:0]   plugin_keep_o,
  output logic                   plugin_last_o,
  input  logic                   result_valid_i,
  output logic                   result_ready_o,
  input  logic [DataBytes*8-1:0] result_data_i,
  input  logic [DataBytes-1:0]   result_keep_i,
  input  logic                   result_last_i,

  // Local result: command, data, and the writer's word that it is visible.
  output logic           write_command_valid_o,
  input  logic           write_command_ready_i,
  output address_t       write_command_address_o,
  output segment_bytes_t write_command_bytes_o,
  output logic                   write_valid_o,
  input  logic                   write_ready_i,
  output logic [DataBytes*8-1:0] write_data_o,
  output logic [DataBytes-1:0]   write_keep_o,
  output logic                   write_last_o,
  input  logic           written_valid_i,
  input  logic           written_error_i,
  // Local result to a kernel's stream, which has room: the words of write_data_o, and of which segment they are.
  output logic                   sink_valid_o,
  input  logic                   sink_ready_i,
  output stream_port_t           sink_port_o,
  output logic                   sink_starts_o,
  output logic                   sink_ends_o,

  // Remote result.
  output logic      transmit_valid_o,
  input  logic      transmit_ready_i,
  output transmit_t transmit_o,
  output logic                   send_valid_o,
  input  logic                   send_ready_i,
  output logic [DataBytes*8-1:0] send_data_o,
  output logic [DataBytes-1:0]   send_keep_o,
  output logic                   send_last_o,
  output slot_t                  send_slot_o,      // whose words these are

  // Ends, in order. Never refused.
  output logic     end_valid_o,
  output job_end_t end_o,

  // For counters: a word is wanted that memory has not delivered.
  output logic     starves_o
);

  // What the stages after the readers need to know.
  typedef struct packed {
    func_e func;
    datatype_e dtype;
    logic swap;
    logic wide;          // operands of fp16 or bf16 are combined as fp32
    op0_e op0;
    op1_e op1;
  } join_t;
  typedef struct packed {
    slot_t slot;
    logic empty;
    logic accumulate;
    logic [1:0] narrows;   // a cast_mode_e: what the words of fp32 become
    logic local_;
    logic stream;
    stream_port_t port;
    logic starts;
    logic ends;
    logic send;
    transmit_t transmit;
  } fork_t;
  typedef struct packed {
    job_end_t job;
    logic local_;
  } wait_t;

  // ------------------------------------------------------------------------------------------- acceptance
  // A job goes to all that it concerns in one cycle, once all have room.

  logic join_ready, fork_ready, wait_ready, begins;
  logic with_data;
  assign with_data = job_i.bytes != '0;
  assign begins = join_ready && fork_ready && wait_ready && op0_command_ready_i &&
                  op1_command_ready_i && source_command_ready_i && write_command_ready_i;
  assign job_ready_o = begins;

  logic accepted;
  assign accepted = job_valid_i && begins;
  assign op0_command_valid_o = accepted && with_data && job_i.op0 == Op0Memory;
  assign op0_command_address_o = job_i.op0_address;
  assign op0_command_bytes_o = job_i.bytes;
  assign op1_command_valid_o = accepted && with_data && job_i.op1 == Op1Memory;
  assign op1_command_address_o = job_i.op1_address;
  assign op1_command_bytes_o = job_i.bytes;
  assign source_command_valid_o = accepted && with_data && job_i.op0 == Op0Stream;
  assign source_command_port_o = stream_port_t'(job_i.op0_address);
  assign source_command_bytes_o = job_i.bytes;
  assign write_command_valid_o = accepted && with_data && job_i.local_ && !job_i.stream;
  assign write_command_address_o = job_i.local_address;
  assign write_command_bytes_o = job_i.bytes;

  // ------------------------------------------------------------------------------------------------ queues

  join_t join_in, join_head;
  fork_t fork_in, fork_head;
  wait_t wait_in, wait_head;
  logic join_valid, join_take, fork_valid, fork_take, wait_valid, wait_take;

  always_comb begin
    join_in = '{func: job_i.func, dtype: job_i.dtype, swap: job_i.swap, wide: job_i.wide,
                op0: job_i.op0, op1: job_i.op1};
    fork_in = '{slot: job_i.id.slot, empty: !with_data, accumulate: job_i.accumulate, narrows: CastModePass,
                local_: job_i.local_, stream: job_i.stream, port: stream_port_t'(job_i.local_address),
                starts: job_i.starts, ends: job_i.last, send: job_i.send, transmit: job_i.transmit};
    if (job_i.wide && !job_i.accumulate) fork_in.narrows = job_i.dtype == DatatypeBf16 ? CastModeBf16 : CastModeFp16;
    wait_in.job = '{id: job_i.id, generation: job_i.generation, last: job_i.last, wakes: job_i.wakes,
                    made: job_i.local_ ? job_i.bytes : '0, error: 1'b0, serves: 1'b0,
                    releases: job_i.releases, buffer: job_i.buffer};
    // A queue has the words of a stream when they have passed.
    wait_in.local_ = job_i.local_ && with_data && !job_i.stream;
  end

  unisono_fifo #(.Width($bits(join_t)), .Depth(QueueDepth)) u_join_queue (
    .clk_i, .rst_ni, .in_valid_i(accepted && with_data), .in_ready_o(join_ready), .in_data_i(join_in),
    .out_valid_o(join_valid), .out_ready_i(join_take), .out_data_o(join_head), .count_o()
  );
  unisono_fifo #(.Width($bits(fork_t)), .Depth(QueueDepth)) u_fork_queue (
    .clk_i, .rst_ni, .in_valid_i(accepted), .in_ready_o(fork_ready), .in_data_i(fork_in),
    .out_valid_o(fork_valid), .out_ready_i(fork_take), .out_data_o(fork_head), .count_o()
  );
  unisono_fifo #(.Width($bits(wait_t)), .Depth(4 * QueueDepth)) u_wait_queue (
    .clk_i, .rst_ni, .in_valid_i(accepted), .in_ready_o(wait_ready), .in_data_i(wait_in),
    .out_valid_o(wait_valid), .out_ready_i(wait_take), .out_data_o(wait_head), .count_o()
  );

  // ------------------------------------------------------------------------------------------------- join
  // Both operands have the same length, so their words meet one to one.

  // A word of the result, from the plugins, past them, or rounded.
  logic there_valid, there_last;
  logic [DataBytes*8-1:0] there_data;
  logic [DataBytes-1:0] there_keep;
  // The accumulator holds the words of one segment, as fp32 if need be.
  localparam int unsigned AccumulatorDepth = 2 * MaxSegment / DataBytes;
  logic sum_valid, sum_ready, sum_last, keeps_valid, keeps_ready;
  logic [DataBytes*8-1:0] sum_data;
  logic [DataBytes-1:0] sum_keep;
  unisono_fifo #(.Width(DataBytes * 9 + 1), .Depth(AccumulatorDepth)) u_accumulator (
    .clk_i, .rst_ni,
    .in_valid_i(keeps_valid), .in_ready_o(keeps_ready), .in_data_i({there_last, there_keep, there_data}),
    .out_valid_o(sum_valid), .out_ready_i(sum_ready), .out_data_o({sum_last, sum_keep, sum_data}), .count_o()
  );

  logic fires, last_half, narrows, both_take;
  logic [DataBytes*8-1:0] op0_data, op1_data, wide_data0, wide_data1, only_data;
  logic [DataBytes-1:0] op0_own_keep, op1_keep, wide_keep0, wide_keep1;
  logic op0_there, op0_last, from_sum, from_source, has_op0;
  logic [DataBytes-1:0] op0_keep;
  assign from_sum = join_head.op0 == Op0Accumulator;
  assign from_source = join_head.op0 == Op0Stream;
  assign has_op0 = join_head.op0 != Op0None;
  assign op0_there = from_sum ? sum_valid : from_source ? source_valid_i : !has_op0 || op0_valid_i;
  assign op0_data = from_source ? source_data_i : op0_data_i;
  assign op0_own_keep = from_source ? source_keep_i : op0_keep_i;
  assign op0_last = from_sum ? sum_last : (from_source ? source_last_i : op0_last_i) && last_half;
  assign op0_keep = from_sum ? sum_keep : join_head.wide ? wide_keep0 : op0_own_keep;

  logic op1_there, op1_last, from_bypass, from_memory;
  assign from_bypass = join_head.op1 == Op1Bypass;
  assign from_memory = join_head.op1 == Op1Memory;
  assign op1_there = from_bypass ? bypass_valid_i : from_memory ? op1_valid_i : 1'b1;
  assign op1_last = (from_bypass ? bypass_last_i : op1_last_i) && last_half;
  assign op1_data = from_bypass ? bypass_data_i : op1_data_i;
  assign op1_keep = from_bypass ? bypass_keep_i : op1_keep_i;

  // A word of 16-bit numbers that are combined as fp32 stands for two cycles, unless it ends in its lower half.
  logic upper_q;
  assign last_half = !join_head.wide || upper_q ||
                     !(join_head.op1 != Op1None ? op1_keep[DataBytes/2] : op0_own_keep[DataBytes/2]);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) upper_q <= 1'b0;
    else if (fires) upper_q <= !last_half;
  end
  logic wide;
  assign wide = join_valid && join_head.wide;
  unisono_half_widen #(.DataBytes(DataBytes)) u_wide0 (
    .wanted_i(wide), .upper_i(upper_q), .brain_i(join_head.dtype == DatatypeBf16),
    .data_i(op0_data), .keep_i(op0_own_keep),
    .data_o(wide_data0), .keep_o(wide_keep0)
  );
  unisono_half_widen #(.DataBytes(DataBytes)) u_wide1 (
    .wanted_i(wide), .upper_i(upper_q), .brain_i(join_head.dtype == DatatypeBf16),
    .data_i(op1_data), .keep_i(op1_keep),
    .data_o(wide_data1), .keep_o(wide_keep1)
  );

  // A word that no function changes passes the plugins by, when nothing is inside them that must leave first: then the
  // fork is at the same job. It leaves in the cycle in which it is taken.
  logic direct, word_here, busy_inside, offered_q;
  assign word_here = join_valid && op1_there && op0_there;
  assign direct = !busy_inside && !offered_q && join_head.func == FuncNone && !join_head.wide && !from_sum &&
                  fork_valid && !fork_head.empty && !narrows;
  assign plugin_valid_o = word_here && !direct;
  assign fires = word_here && (direct ? both_take : plugin_ready_i);

  // Words that the plugins have taken and whose results have not left.
  localparam int unsigned InsideWidth = 8;
  logic [InsideWidth-1:0] inside_q;
  logic goes_inside, comes_out;
  assign busy_inside = inside_q != '0;
  assign goes_inside = plugin_valid_o && plugin_ready_i;
  assign comes_out = result_valid_i && result_ready_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= '0;
      offered_q <= 1'b0;
    end else begin
      inside_q <= inside_q + InsideWidth'(goes_inside) - InsideWidth'(comes_out);
      // What is on offer to the plugins stays so.
      offered_q <= plugin_valid_o && !plugin_ready_i;
    end
  end
  assign op0_ready_o = fires && join_head.op0 == Op0Memory && last_half;
  assign sum_ready = fires && from_sum;
  assign source_ready_o = fires && from_source && last_half;
  assign op1_ready_o = fires && from_memory && last_half;
  assign bypass_ready_o = fires && from_bypass && last_half;
  // An operand that is not used is zero, so that a word on offer does not change.
  assign plugin_op0_o = from_sum ? sum_data : !has_op0 ? '0 : join_head.wide ? wide_data0 : op0_data;
  assign plugin_op1_o = join_head.op1 == Op1None ? '0 : join_head.wide ? wide_data1 : op1_data;
  assign only_data = has_op0 ? op0_data : op1_data;
  assign plugin_use0_o = has_op0;
  assign plugin_use1_o = join_head.op1 != Op1None;
  assign plugin_func_o = join_head.func;
  assign plugin_dtype_o = join_head.wide ? DatatypeFp32 : join_head.dtype;
  assign plugin_swap_o = join_head.swap;
  assign plugin_keep_o = has_op0 ? op0_keep : join_head.wide ? wide_keep1 : op1_keep;
  assign plugin_last_o = has_op0 ? op0_last : op1_last;
  assign join_take = fires && plugin_last_o;
  assign starves_o = join_valid && ((join_head.op0 == Op0Memory && !op0_valid_i) || (from_memory && !op1_valid_i));

  // Whether memory answered a job's reads with an error: kept beside its words until they leave the plugins.
  logic bad_word, bad_d, bad_q, read_bad;
  assign bad_word = (join_head.op0 == Op0Memory && op0_error_i) || (from_memory && op1_error_i);
  assign bad_d = fires ? !plugin_last_o && (bad_q || bad_word) : bad_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) bad_q <= 1'b0;
    else bad_q <= bad_d;
  end
  // Of a job whose last word passed the plugins by, it is known as that leaves.
  logic listed_bad;
  unisono_fifo #(.Width(1), .Depth(2 * QueueDepth)) u_read_bad (
    .clk_i, .rst_ni, .in_valid_i(join_take && !direct), .in_ready_o(), .in_data_i(bad_q || bad_word),
    .out_valid_o(), .out_ready_i(fork_take && !fork_head.empty && !direct), .out_data_o(listed_bad), .count_o()
  );
  assign read_bad = direct ? bad_q || bad_word : listed_bad;

  // ------------------------------------------------------------------------------------------------- fork

  logic announced_d, announced_q;    // Tx has the header of the packet at the head
  logic tx_done;                     // the head's packet has left, or it sends none
  logic moves_on;

  // If no job waits before it, a job with data is announced as it comes.
  logic announces_early;
  assign announces_early = !fork_valid && accepted && with_data && job_i.send;
  assign transmit_valid_o = (fork_valid && fork_head.send && !announced_q) || announces_early;
  assign transmit_o = fork_valid ? fork_head.transmit : job_i.transmit;

  // What has been combined as fp32 becomes what it was: by its job's words alone, up to the last.
  logic narrow_in, narrow_ready, narrow_valid, narrow_last, narrow_unused, fed_q;
  logic [DataBytes*8-1:0] narrow_data;
  logic [DataBytes-1:0] narrow_keep;
  assign narrows = fork_head.narrows != CastModePass;
  assign narrow_in = fork_valid && !fork_head.empty && narrows && result_valid_i && !fed_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fork_take) fed_q <= 1'b0;
    else if (narrow_in && narrow_ready && result_last_i) fed_q <= 1'b1;
  end
  unisono_cast_narrow #(.DataBytes(DataBytes)) u_narrow (
    .clk_i, .rst_ni, .in_mode_i(fork_head.narrows), .in_valid_i(narrow_in), .in_ready_o(narrow_ready),
    .in_data_i(result_data_i), .in_keep_i(result_keep_i), .in_last_i(result_last_i), .in_user_i(1'b0),
    .out_valid_o(narrow_valid), .out_ready_i(fork_valid && narrows && both_take), .out_data_o(narrow_data),
    .out_keep_o(narrow_keep), .out_last_o(narrow_last), .out_user_o(narrow_unused)
  );

  assign there_valid = narrows ? narrow_valid : direct ? word_here : result_valid_i;
  assign there_data = narrows ? narrow_data : direct ? only_data : result_data_i;
  assign there_keep = narrows ? narrow_keep : direct ? plugin_keep_o : result_keep_i;
  assign there_last = narrows ? narrow_last : direct ? plugin_last_o : result_last_i;

  logic word_there;
  assign word_there = fork_valid && !fork_head.empty && there_valid;
  // A word leaves when all that it concerns take it.
  logic local_ready;
  assign local_ready = fork_head.stream ? sink_ready_i : write_ready_i;
  assign both_take = (!fork_head.accumulate || keeps_ready) && (!fork_head.local_ || local_ready) &&
                     (!fork_head.send || (announced_q && send_ready_i));
  assign keeps_valid = word_there && fork_head.accumulate;
  assign write_valid_o = word_there && fork_head.local_ && !fork_head.stream &&
                         (!fork_head.send || (announced_q && send_ready_i));
  assign sink_valid_o = word_there && fork_head.local_ && fork_head.stream &&
                        (!fork_head.send || (announced_q && send_ready_i));
  assign sink_port_o = fork_head.port;
  assign sink_starts_o = fork_head.starts;
  assign sink_ends_o = fork_head.ends;
  assign send_valid_o = word_there && fork_head.send && announced_q &&
                        (!fork_head.local_ || local_ready);
  assign result_ready_o = narrows ? narrow_in && narrow_ready : fork_valid && !fork_head.empty && !direct && both_take;
  assign write_data_o = there_data;
  assign write_keep_o = there_keep;
  assign write_last_o = there_last;
  assign send_data_o = there_data;
  assign send_keep_o = there_keep;
  assign send_last_o = there_last;
  assign send_slot_o = fork_head.slot;

  assign moves_on = fork_head.empty ? !fork_head.send || (transmit_valid_o && transmit_ready_i)
                                    : word_there && both_take && there_last;
  assign fork_take = fork_valid && moves_on;
  assign tx_done = fork_take;
  assign announced_d = fork_take ? 1'b0 : announced_q || (transmit_valid_o && transmit_ready_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) announced_q <= 1'b0;
    else announced_q <= announced_d;
  end

  // ------------------------------------------------------------------------------------------------- ends
  // Jobs pass the fork in order, and results become visible in order: two queues of how it went say which jobs have
  // ended.

  logic passed_valid, passed_bad, written_valid, written_bad;
  assign wait_take = wait_valid && passed_valid && (!wait_head.local_ || written_valid);
  unisono_fifo #(.Width(1), .Depth(4 * QueueDepth)) u_passed (
    .clk_i, .rst_ni, .in_valid_i(tx_done), .in_ready_o(), .in_data_i(!fork_head.empty && read_bad),
    .out_valid_o(passed_valid), .out_ready_i(wait_take), .out_data_o(passed_bad), .count_o()
  );
  unisono_fifo #(.Width(1), .Depth(4 * QueueDepth)) u_written (
    .clk_i, .rst_ni, .in_valid_i(written_valid_i), .in_ready_o(), .in_data_i(written_error_i),
    .out_valid_o(written_valid), .out_ready_i(wait_take && wait_head.local_), .out_data_o(written_bad), .count_o()
  );

  always_comb begin
    end_valid_o = wait_take;
    end_o = wait_head.job;
    end_o.error = passed_bad || (wait_head.local_ && written_bad);
  end

  // ------------------------------------------------------------------------------------------- assertions

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && accepted) begin
      assert (!with_data || job_i.op0 != Op0None || job_i.op1 != Op1None)
        else $error("a job with data has no operand");
      assert (with_data || (job_i.op1 == Op1None && !job_i.local_))
        else $error("a job without data has an operand or a local result");
      assert (!job_i.accumulate || (with_data && !job_i.local_ && !job_i.send))
        else $error("a partial result goes to the accumulator only");
      assert (!job_i.releases || job_i.op1 == Op1Memory)
        else $error("only an operand in memory stands in a receive buffer");
    end
    if (rst_ni) begin
      assert (inside_q != '0 || !result_valid_i) else $error("a result that nobody asked for");
      assert (inside_q != '1) else $error("more words in the plugins than can be counted");
      assert (!direct || (has_op0 != (join_head.op1 != Op1None)) || !word_here)
        else $error("a word of two operands passes the plugins by");
    end
    if (rst_ni && fires && has_op0 && join_head.op1 != Op1None) begin
      assert (op0_last == op1_last) else $error("operands of different length");
    end
  end
  `endif

endmodule
