// What happens in the engine in this cycle, for counters, the counters themselves, and the clock of the trace. Both go
// on through a reset by the host. Records get the number of their call.
//
// Latency: none for events. Throughput: all that happens in a cycle.

module unisono_cclo_observe
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_core_pkg::*;
#(
  parameter bit Skips = 1'b0                          // an edge may stand for many cycles, or for none
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             engine_rst_ni,             // also by the host
  input  logic [31:0]      cycles_i,                  // that end at this edge, if Skips
  output logic [47:0]      cycle_o,

  // Calls: one is active, words of descriptors come, one begins, has ended, is answered.
  input  logic             busy_i, descriptor_i, begins_i, ended_i, ended_failed_i, answers_i,
  input  logic [Calls-1:0][31:0] call_id_i,
  input  slot_t            begins_slot_i,
  // Items: one goes to the microcontroller, of a call or about tables, and one is done.
  input  logic             item_i, item_of_call_i, step_i,
  // A move, or the end of a program; a slot is cleared; room of windows.
  input  logic             move_i, move_end_i,
  input  slot_t            move_slot_i,
  input  logic             clear_valid_i,
  input  slot_t            clear_slot_i,
  input  rooms_t           room_i,

  // Of the data path.
  input  unisono_observe_pkg::events_t events_i,
  input  move_record_t     record_i,
  input  logic [unisono_dmp_pkg::BufferWidth:0] free_buffers_i,

  output unisono_observe_pkg::events_t events_o,
  output move_record_t     record_o,
  input  logic             read_i,                    // of counters
  input  unisono_observe_pkg::counter_index_t index_i,
  output logic [63:0]      value_o
);

  logic [47:0] cycle_q;
  assign cycle_o = cycle_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) cycle_q <= '0;
    else cycle_q <= cycle_q + (Skips ? 48'(cycles_i) : 48'd1);
  end

  // Items given to the microcontroller and not done. Those about tables have no end that is told.
  logic [2:0] items_q;
  always_ff @(posedge clk_i) begin
    if (!engine_rst_ni) items_q <= '0;
    else items_q <= items_q + 3'(item_i && item_of_call_i) - 3'(step_i);
  end

  // Programs that have more moves than were emitted.
  logic [Calls-1:0] unfinished_q;
  always_ff @(posedge clk_i) begin
    if (!engine_rst_ni) begin
      unfinished_q <= '0;
    end else begin
      if (move_i && move_end_i) unfinished_q[move_slot_i] <= 1'b0;
      if (clear_valid_i) unfinished_q[clear_slot_i] <= 1'b0;
      if (begins_i) unfinished_q[begins_slot_i] <= 1'b1;
    end
  end
  logic no_room;
  always_comb begin
    no_room = 1'b0;
    for (int unsigned s = 0; s < Calls; s++) begin
      no_room |= unfinished_q[s] && room_i[s] < (EntryWidth + 1)'(MovesPerStep);
    end
  end

  always_comb begin
    events_o = events_i;
    events_o[CounterCycles] = 1'b1;
    events_o[CounterBusy] = busy_i;
    events_o[CounterDescriptorWords] = descriptor_i;
    events_o[CounterCalls] = begins_i;
    events_o[CounterCallsCompleted] = ended_i && !ended_failed_i;
    events_o[CounterCallsFailed] = ended_i && ended_failed_i;
    events_o[CounterAnswers] = answers_i;
    events_o[CounterCpuItems] = item_i;
    events_o[CounterCpuBusy] = items_q != '0;
    events_o[CounterMoves] = move_i && !move_end_i;
    events_o[CounterStallWindow] = items_q == '0 && no_room;
  end

  unisono_counters #(.LevelWidth(unisono_dmp_pkg::BufferWidth + 1), .Skips(Skips)) u_counters (
    .clk_i, .rst_ni, .cycles_i, .events_i(events_o),
    .level_i((unisono_dmp_pkg::BufferWidth + 1)'(unisono_dmp_pkg::Buffers) - free_buffers_i),
    .read_i, .index_i, .value_o
  );

  always_comb begin
    record_o = record_i;
    record_o.call_id = call_id_i[record_i.slot[SlotWidth-1:0]];
  end

endmodule
