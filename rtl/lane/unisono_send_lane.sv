// Send lane: carries out jobs that read memory and send it, beside the compute lane.
//
// Jobs have one operand in memory and no function, or no data at all. They pass in order. The dispatcher has seen to
// it that every job can end by itself (rule 1 of docs/rtl/engine.md).
//
// A packet is announced to Tx when its first word is there, so that Tx never waits for memory while the compute lane
// has something to send; if nothing there does (alone_i), it is announced at once.
//
// Latency: from job to read command none; from the first word to Tx 1 cycle if it has been announced. Throughput: one
// word per cycle; one cycle more per packet.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_send_lane
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned QueueDepth = 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic job_valid_i,
  output logic job_ready_o,
  input  job_t job_i,
  input  logic alone_i,

  output logic           command_valid_o,
  input  logic           command_ready_i,
  output address_t       command_address_o,
  output segment_bytes_t command_bytes_o,
  input  logic                   read_valid_i,
  output logic                   read_ready_o,
  input  logic [DataBytes*8-1:0] read_data_i,
  input  logic [DataBytes-1:0]   read_keep_i,
  input  logic                   read_last_i,
  input  logic                   read_error_i,      // of a word of the packet, with its last one

  output logic      transmit_valid_o,
  input  logic      transmit_ready_i,
  output transmit_t transmit_o,
  output logic      transmit_serves_o,              // it is of no call
  output logic                   send_valid_o,
  input  logic                   send_ready_i,
  output logic [DataBytes*8-1:0] send_data_o,
  output logic [DataBytes-1:0]   send_keep_o,
  output logic                   send_last_o,
  output slot_t                  send_slot_o,       // whose words these are

  output logic     end_valid_o,
  input  logic     end_ready_i,
  output job_end_t end_o,

  // For counters: a word is wanted that memory has not delivered.
  output logic     starves_o
);

  typedef struct packed {
    logic empty;
    transmit_t transmit;
    job_end_t job;
  } item_t;

  item_t item_in, item;
  logic with_data, queue_ready, accepted, item_valid, item_take, ends_ready;

  assign with_data = job_i.bytes != '0;
  assign job_ready_o = queue_ready && command_ready_i;
  assign accepted = job_valid_i && job_ready_o;
  assign command_valid_o = accepted && with_data;
  assign command_address_o = job_i.op0 == Op0Memory ? job_i.op0_address : job_i.op1_address;
  assign command_bytes_o = job_i.bytes;

  always_comb begin
    item_in.empty = !with_data;
    item_in.transmit = job_i.transmit;
    item_in.job = '{id: job_i.id, generation: job_i.generation, last: job_i.last, wakes: 1'b0, made: '0,
                    error: 1'b0, serves: job_i.serves, releases: 1'b0, buffer: '0};
  end

  unisono_fifo #(.Width($bits(item_t)), .Depth(QueueDepth)) u_queue (
    .clk_i, .rst_ni, .in_valid_i(accepted), .in_ready_o(queue_ready), .in_data_i(item_in),
    .out_valid_o(item_valid), .out_ready_i(item_take), .out_data_o(item), .count_o()
  );

  logic announced_q, announces, offered_q, passes;
  assign transmit_valid_o = item_valid && ends_ready && !announced_q &&
                            (item.empty || read_valid_i || alone_i || offered_q);
  assign transmit_o = item.transmit;
  assign transmit_serves_o = item.job.serves;
  assign announces = transmit_valid_o && transmit_ready_i;
  assign passes = item_valid && announced_q;
  assign send_valid_o = passes && read_valid_i;
  assign read_ready_o = passes && send_ready_i;
  assign send_data_o = read_data_i;
  assign send_keep_o = read_keep_i;
  assign send_last_o = read_last_i;
  assign send_slot_o = item.job.id.slot;
  assign starves_o = item_valid && !item.empty && !read_valid_i;
  assign item_take = item.empty ? announces : send_valid_o && send_ready_i && read_last_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      announced_q <= 1'b0;
      offered_q <= 1'b0;
    end else begin
      announced_q <= !item_take && (announced_q || announces);
      // What is on offer stays so.
      offered_q <= transmit_valid_o && !transmit_ready_i;
    end
  end

  job_end_t job_end;
  always_comb begin
    job_end = item.job;
    job_end.error = !item.empty && read_error_i;
  end

  unisono_fifo #(.Width($bits(job_end_t)), .Depth(4)) u_ends (
    .clk_i, .rst_ni, .in_valid_i(item_take), .in_ready_o(ends_ready), .in_data_i(job_end),
    .out_valid_o(end_valid_o), .out_ready_i(end_ready_i), .out_data_o(end_o), .count_o()
  );

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && accepted) begin
      assert (job_i.send && !job_i.local_ && !job_i.accumulate && !job_i.releases && !job_i.wakes &&
              job_i.func == FuncNone)
        else $error("a job that does more than send");
      assert (!with_data || (job_i.op0 == Op0Memory) != (job_i.op1 == Op1Memory))
        else $error("a job with data has one operand in memory");
    end
  end
  `endif

endmodule
