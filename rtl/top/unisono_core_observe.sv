// What happens in the core in this cycle, for counters: moves, jobs, words, and what moves wait for; and a record of
// each move that has retired, for the trace.
//
// Latency: none for events; see unisono_move_trace for records. Throughput: all that happens in a cycle.

module unisono_core_observe
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_core_pkg::*;
(
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [47:0]         cycle_i,

  // A slot is cleared in the window, or in the dispatcher.
  input  logic                clear_window_i, clear_dispatcher_i,
  input  slot_t               clear_slot_i,
  input  call_context_t       contexts_i [Calls],
  input  communicator_entry_t communicators_i [Calls],

  // Moves: one enters, issues, is looked at, is put aside, gets a job, is complete, retires.
  input  logic                entered_i,
  input  move_id_t            entered_id_i,
  // Of it other fields count elsewhere, as of what is sent.
  // verilator lint_off UNUSEDSIGNAL
  input  entering_t           entering_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic                issue_valid_i, issue_ready_i,
  input  move_id_t            issue_id_i,
  input  logic                look_valid_i,
  input  move_id_t            look_id_i,
  input  logic                park_valid_i,
  input  unisono_observe_pkg::wait_e park_cause_i,
  input  move_id_t            event_id_i,
  input  logic                job_valid_i, job_lane_i,
  input  logic [1:0]          job_ready_i,
  input  logic                ended_i, complete_i,
  input  move_id_t            complete_id_i,
  input  logic                retired_i,
  input  move_id_t            retired_id_i,

  // Words and segments.
  input  logic                buffered_i, bypassed_i, starves_i,
  input  logic [2:0]          read_valid_i, read_ready_i,
  input  logic [1:0]          write_valid_i, write_ready_i,
  input  logic [1:0]          transmit_valid_i, transmit_ready_i,
  // verilator lint_off UNUSEDSIGNAL
  input  transmit_t [1:0]     transmit_i,
  // verilator lint_on UNUSEDSIGNAL

  output unisono_observe_pkg::events_t events_o,
  output logic                record_valid_o,
  output move_record_t        record_o
);

  logic issued, takes;
  // Nothing counts moves that wait for nothing.
  // verilator lint_off UNUSEDSIGNAL
  logic [unisono_observe_pkg::Waits-1:0] waiting;
  // verilator lint_on UNUSEDSIGNAL
  logic [2:0] reads;
  logic [1:0] writes, transmits, is_request;

  assign issued = issue_valid_i && issue_ready_i;
  assign takes = job_valid_i && job_ready_i[job_lane_i];
  assign reads = read_valid_i & read_ready_i;
  assign writes = write_valid_i & write_ready_i;
  assign transmits = transmit_valid_i & transmit_ready_i;
  for (genvar l = 0; l < 2; l++) begin : gen_transmits
    assign is_request[l] = transmit_i[l].header.type_ == MessageTypeRequest;
  end

  unisono_waits u_waits (
    .clk_i, .rst_ni, .look_valid_i, .look_issue_i(issue_ready_i), .look_id_i, .park_valid_i, .park_cause_i,
    .park_id_i(event_id_i), .clear_valid_i(clear_dispatcher_i), .clear_slot_i, .waiting_o(waiting)
  );

  unisono_move_trace u_trace (
    .clk_i, .rst_ni, .cycle_i, .clear_valid_i(clear_window_i), .clear_slot_i,
    .entered_valid_i(entered_i), .entered_id_i, .entered_move_i(entering_i.move),
    .entered_trivial_i(entering_i.trivial),
    .issued_valid_i(issued), .job_valid_i(takes), .park_valid_i, .park_cause_i,
    .dispatcher_id_i(issue_ready_i ? issue_id_i : event_id_i),
    .completed_valid_i(complete_i), .completed_id_i(complete_id_i),
    .retired_valid_i(retired_i), .retired_id_i, .contexts_i, .communicators_i,
    .valid_o(record_valid_o), .record_o
  );

  always_comb begin
    events_o = '0;
    events_o[CounterMovesEntered] = entered_i;
    events_o[CounterMovesIssued] = issued;
    events_o[CounterMovesRetired] = retired_i;
    events_o[CounterComputeJobs] = takes && !job_lane_i;
    events_o[CounterSendJobs] = takes && job_lane_i;
    events_o[CounterJobsEnded] = ended_i;
    events_o[CounterSegmentsBuffered] = buffered_i;
    events_o[CounterSegmentsBypassed] = bypassed_i;
    events_o[CounterOp0Words] = reads[0];
    events_o[CounterOp1Words] = reads[1];
    events_o[CounterSendWords] = reads[2];
    events_o[CounterResultWords] = writes[0];
    events_o[CounterBufferWords] = writes[1];
    events_o[CounterStallRead] = starves_i;
    events_o[CounterStallWrite] = |(write_valid_i & ~write_ready_i);
    events_o[CounterStallLane] = job_valid_i && !takes;
    events_o[CounterStallCredit] = waiting[unisono_observe_pkg::WaitCredit];
    events_o[CounterStallGrant] = waiting[unisono_observe_pkg::WaitGrant];
    events_o[CounterStallSpace] = waiting[unisono_observe_pkg::WaitSpace];
    events_o[CounterStallArrival] = waiting[unisono_observe_pkg::WaitArrival];
    events_o[CounterStallProducer] = waiting[unisono_observe_pkg::WaitProducer];
    // Requests leave one after the other: Tx takes one message at a time.
    events_o[CounterRequestsSent] = |(transmits & is_request);
    events_o[CounterSegmentsSent] = |(transmits & ~is_request);
  end

endmodule
