// What peers are granted: which pairs wait for more, how much they get, and the message that says so.
//
// A long message is granted in steps of GrantSegments segments, of the length that it has, two at first. Each granted
// segment then has a buffer in reserve. A message that finds none left is granted one segment at a time: every arrival
// of every window has one buffer of its own, whatever the others do. More is granted when one step of two has been
// taken, or the one segment. When the posted arrival is long and all of it is granted, the next one gets its first
// grant. (Not behind a short one: its sender may have no credit, and ask for a grant of its own.) A message that has
// begun on credit is granted from where it has come to.
//
// A pair stands in the queue at most once. Three cycles take it from there to its grant: its record is there (look), it
// is stepped (step), and the message is offered from the next cycle on.
//
// Latency: what makes a grant due puts the pair into the queue 1 cycle later; from there to the message it takes 3.
// Throughput: one pair in 3 cycles.

module unisono_rbm_grants
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
#(
  parameter int unsigned GrantSegments = 16,         // granted at a time
  parameter int unsigned GrantBuffers = 512          // that grants may have in reserve
) (
  input  logic clk_i,
  input  logic rst_ni,

  // The pair under way, and its record.
  input  pair_t               pair_i,
  input  logic                known_i,
  input  record_t             seen_i,
  // Of the call, and of its communicator, other fields count elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  call_context_t       context_i,             // one cycle later
  input  communicator_entry_t communicator_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [31:0]         sequence_i,            // of a receive's message
  input  session_t            session_i,

  // It waits for more from now on: surely, or if what is written says so. pair_i stays for one cycle more.
  input  logic                push_i,
  input  logic                ask_i,
  // Of what is asked about only some fields count.
  // verilator lint_off UNUSEDSIGNAL
  input  record_t             record_i,
  // verilator lint_on UNUSEDSIGNAL

  // The pair that has waited longest.
  output logic                head_valid_o,
  input  logic                head_take_i,
  output pair_t               head_o,
  input  logic                wipe_i,                // pair_i waits no more; the queue is empty

  output logic                due_o,                 // the pair under way gets more: it is stepped in the next cycle
  input  logic                step_i,
  output record_t             stepped_o,             // its record afterwards

  // What a message had in reserve is free: of the posted arrival, of the next one.
  input  logic                return_now_i,
  input  logic                return_next_i,

  output transmit_t           transmit_o             // of the last step
);

  localparam int unsigned ReserveWidth = $clog2(GrantBuffers + 1);
  localparam int unsigned Reserve = 2 * GrantSegments;
  if (GrantSegments != 1 << $clog2(GrantSegments) || GrantBuffers < Reserve) begin : gen_bad_segments
    $error("unisono_rbm_grants: GrantSegments must be a power of two, and GrantBuffers at least twice that");
  end

  // ------------------------------------------------------------------------------------------- how much

  logic [ReserveWidth-1:0] reserved_d, reserved_q;
  message_bytes_t segment_step, ample_step, grant_step, grant_end;
  message_bytes_t granted_total;
  message_bytes_t granted_base;
  logic first_grant, ample, grants_now, grants_next_d, grants_next_q, grants_rest;
  logic behind_d, behind_q;                          // more has come on credit than is granted

  assign grants_now = known_i && seen_i.posted && seen_i.rendezvous &&
                        (!seen_i.granted || seen_i.limit != seen_i.total);
  assign grants_next_d = known_i && !grants_now && seen_i.rendezvous && seen_i.next.posted &&
                         seen_i.next.rendezvous && !seen_i.next.granted;
  assign due_o = grants_now || grants_next_d;
  assign granted_total = grants_next_q ? seen_i.next.total : seen_i.total;
  assign behind_d = seen_i.limit < seen_i.received;
  assign granted_base = grants_next_q ? '0 : behind_q ? seen_i.received : seen_i.limit;

  // What a switch sends has the agreed length; ranks behind the members are switches.
  logic from_switch;
  segment_bytes_t segment;
  assign from_switch = communicator_i.members != '0 && {1'b0, pair_i.peer} >= communicator_i.members;
  unisono_message_segment u_segment (
    .bytes_i(granted_total), .eager_limit_i(communicator_i.eager_limit), .segment_bytes_i(communicator_i.segment_bytes),
    .whole_i(from_switch), .segment_o(segment)
  );
  assign segment_step = message_bytes_t'(segment);
  assign ample_step = segment_step << $clog2(GrantSegments);
  assign first_grant = grants_next_q || !seen_i.granted;
  assign ample = first_grant ? reserved_q <= ReserveWidth'(GrantBuffers - Reserve) : seen_i.ample;
  assign grant_step = !ample ? segment_step : first_grant ? ample_step << 1 : ample_step;
  assign grants_rest = granted_total - granted_base <= grant_step;
  assign grant_end = grants_rest ? granted_total : granted_base + grant_step;

  always_comb begin
    stepped_o = seen_i;
    if (grants_next_q) begin
      stepped_o.next.limit = grant_end;
      stepped_o.next.ample = ample;
      stepped_o.next.granted = 1'b1;
    end else begin
      stepped_o.limit = grant_end;
      stepped_o.ample = ample;
      stepped_o.granted = 1'b1;
    end
  end

  always_comb begin
    reserved_d = reserved_q;
    if (return_now_i) reserved_d = reserved_d - ReserveWidth'(Reserve);
    if (return_next_i) reserved_d = reserved_d - ReserveWidth'(Reserve);
    if (step_i && first_grant && ample) reserved_d = reserved_d + ReserveWidth'(Reserve);
  end

  // ----------------------------------------------------------------------------------------- which pair

  // More is granted when one step of two has been taken, or the one segment. Of the record only this much counts.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic wants_more(record_t record, message_bytes_t step);
    return record.posted && record.rendezvous &&
           (!record.granted || (record.limit != record.total &&
                                record.limit <= record.consumed + (record.ample ? step : '0)));
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  logic push_d, grants_push_q, grants_ask_q, enter, waits, enters_ready;
  logic unused_lower_bit, unused_read_bit;
  logic [$clog2(Pairs):0] unused_count;
  // Of it only what wants_more looks at is kept.
  // verilator lint_off UNUSEDSIGNAL
  record_t grants_record_q;
  // verilator lint_on UNUSEDSIGNAL

  segment_bytes_t asked_segment;
  unisono_message_segment u_asked_segment (
    .bytes_i(grants_record_q.total), .eager_limit_i(communicator_i.eager_limit),
    .segment_bytes_i(communicator_i.segment_bytes), .whole_i(from_switch), .segment_o(asked_segment)
  );

  // When all of the posted arrival is granted, the one behind it is next.
  assign push_d = push_i ||
                  (step_i && !grants_next_q && grants_rest && seen_i.next.posted && seen_i.next.rendezvous);
  // Whether more is granted is found out a cycle after the record has been written.
  assign enter = grants_push_q || (grants_ask_q && wants_more(grants_record_q,
                                                             message_bytes_t'(asked_segment) << $clog2(GrantSegments)));
  unisono_flags #(.Depth(Pairs)) u_grants_waits (
    .clk_i, .raise_valid_i(enter), .raise_index_i(pair_i), .raise_bit_o(waits),
    .lower_valid_i(head_take_i || wipe_i), .lower_index_i(wipe_i ? pair_i : head_o), .lower_bit_o(unused_lower_bit),
    .read_index_i(pair_i), .read_bit_o(unused_read_bit)
  );
  unisono_fifo #(.Width($bits(pair_t)), .Depth(Pairs)) u_grant_queue (
    .clk_i, .rst_ni, .in_valid_i(enter && !waits), .in_ready_o(enters_ready), .in_data_i(pair_i),
    .out_valid_o(head_valid_o), .out_ready_i(head_take_i), .out_data_o(head_o), .count_o(unused_count)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      reserved_q <= '0;
      grants_push_q <= 1'b0;
      grants_ask_q <= 1'b0;
      grants_next_q <= 1'b0;
      behind_q <= 1'b0;
    end else begin
      reserved_q <= reserved_d;
      grants_push_q <= push_d;
      grants_ask_q <= ask_i;
      grants_next_q <= grants_next_d;
      behind_q <= behind_d;
    end
  end

  // ---------------------------------------------------------------------------------------- the message

  message_bytes_t sent_limit_q;
  logic [15:0] sent_generation_q;
  always_ff @(posedge clk_i) begin
    grants_record_q <= record_i;
    if (step_i) begin
      sent_limit_q <= grant_end;
      sent_generation_q <= seen_i.generation + 16'(grants_next_q);
    end
  end

  always_comb begin
    transmit_o = '0;
    transmit_o.communicator = context_i.communicator;
    transmit_o.peer = pair_i.peer;
    transmit_o.session = session_i;
    transmit_o.control = 1'b1;
    transmit_o.header.type_ = MessageTypeGrant;
    transmit_o.header.first = 1'b1;
    transmit_o.header.last = 1'b1;
    transmit_o.header.communicator = communicator_i.number;
    transmit_o.header.epoch = communicator_i.epoch;
    transmit_o.header.source = 32'(communicator_i.rank);
    transmit_o.header.destination = 32'(pair_i.peer);
    transmit_o.header.point_to_point = context_i.point_to_point;
    transmit_o.header.sequence_ = context_i.point_to_point ? sequence_i : context_i.sequence_;
    transmit_o.header.tag = context_i.point_to_point ? context_i.tag : '0;
    transmit_o.header.message_bytes = sent_limit_q;
    transmit_o.header.token_slot = 16'(pair_i);
    transmit_o.header.token_generation = sent_generation_q;
    transmit_o.header.signature = context_i.signature;
  end

  `ifndef SYNTHESIS
  logic due_q;
  always_ff @(posedge clk_i) begin
    due_q <= due_o;
    if (rst_ni) begin
      assert (!step_i || due_q) else $error("a pair is granted more that wants nothing");
      assert (!(enter && !waits) || enters_ready) else $error("a pair that waits for more is lost");
      assert (32'(reserved_q) <= GrantBuffers) else $error("more buffers are in reserve than there may be");
    end
  end
  `endif

endmodule
