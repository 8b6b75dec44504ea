// What ends: jobs of the two lanes, moves without a job, gets whose data is there. One move a cycle is complete; and
// how much of a call is under way.
//
// Jobs of the compute lane end at most one a cycle, and are never held up; those of the send lane wait while one does,
// and moves without a job, which complete rarely, while any does. What follows a get by segments hears of all of it at
// once, as of an end of a job, so a get waits for both.
//
// Latency: 0 cycles for jobs and gets, 1 and what goes first for the rest. Throughput: one move per cycle.

// verilator lint_off PINCONNECTEMPTY

module unisono_core_completion
  import unisono_spec_pkg::Window;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_core_pkg::*;
(
  input  logic     clk_i,
  input  logic     rst_ni,

  // A job goes to a lane, and ends there.
  input  logic     begins_i,
  input  slot_t    begins_slot_i,
  // Of ends other fields count elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  logic     end_valid_i,
  input  job_end_t end_i,
  input  logic     send_end_valid_i,
  output logic     send_end_ready_o,
  input  job_end_t send_end_i,
  // verilator lint_on UNUSEDSIGNAL

  // A move ends without a job; a get or a put ends.
  input  logic     late_valid_i,
  input  move_of_t late_i,
  input  logic     remote_valid_i,
  output logic     remote_ready_o,
  input  move_of_t remote_i,

  output logic     complete_valid_o,
  output move_of_t complete_o,

  // Moves that go on, for the result of their last job is there.
  output logic     wake_valid_o,
  input  logic     wake_ready_i,
  output move_id_t wake_id_o,

  // A slot has no job under way, and no move that is to be woken.
  input  slot_t    slot_i,
  output logic     idle_o
);

  logic ends, sends, late_valid;
  move_of_t late;

  assign ends = end_valid_i && end_i.last;
  assign send_end_ready_o = !ends;
  assign sends = send_end_valid_i && send_end_i.last && !ends;
  unisono_fifo #(.Width($bits(move_of_t)), .Depth(64)) u_late (
    .clk_i, .rst_ni, .in_valid_i(late_valid_i), .in_ready_o(), .in_data_i(late_i),
    .out_valid_o(late_valid), .out_ready_i(!ends && !sends), .out_data_o(late), .count_o()
  );
  assign remote_ready_o = !end_valid_i && !sends && !late_valid;
  assign complete_valid_o = ends || sends || late_valid || (remote_valid_i && remote_ready_o);
  assign complete_o.id = ends ? end_i.id : sends ? send_end_i.id : late_valid ? late.id : remote_i.id;
  assign complete_o.generation = ends ? end_i.generation : sends ? send_end_i.generation
                                 : late_valid ? late.generation : remote_i.generation;

  // A move has at most one job under way that wakes it.
  unisono_fifo #(.Width($bits(move_id_t)), .Depth(Calls * Window), .BlockRam(1'b1)) u_wakes (
    .clk_i, .rst_ni, .in_valid_i(end_valid_i && end_i.wakes), .in_ready_o(), .in_data_i(end_i.id),
    .out_valid_o(wake_valid_o), .out_ready_i(wake_ready_i), .out_data_o(wake_id_o), .count_o()
  );

  // What is sent for a peer's get is no call's.
  typedef logic [6:0] under_way_t;
  logic [Calls-1:0] idle;
  for (genvar s = 0; s < int'(Calls); s++) begin : gen_under_way
    logic begins, made, sent, wakes, woken;
    under_way_t jobs_q, wakes_q;
    assign begins = begins_i && begins_slot_i == slot_t'(s);
    assign made = end_valid_i && end_i.id.slot == slot_t'(s);
    assign sent = send_end_valid_i && send_end_ready_o && !send_end_i.serves && send_end_i.id.slot == slot_t'(s);
    assign wakes = made && end_i.wakes;
    assign woken = wake_valid_o && wake_ready_i && wake_id_o.slot == slot_t'(s);
    assign idle[s] = jobs_q == '0 && wakes_q == '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        jobs_q <= '0;
        wakes_q <= '0;
      end else begin
        jobs_q <= jobs_q + under_way_t'(begins) - under_way_t'(made) - under_way_t'(sent);
        wakes_q <= wakes_q + under_way_t'(wakes) - under_way_t'(woken);
      end
    end
  end
  assign idle_o = idle[slot_i];

endmodule
