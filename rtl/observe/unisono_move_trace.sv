// Trace of moves: a record (move_record_t) of each move that retires, with the cycles in which it passed the stages.
//
// What is known of a move that is under way stands in memories with a word for each window entry; each stage writes its
// own. When the move retires they are read together. Nothing waits for the trace, and the record is on offer for one
// cycle: a simulation takes it there, hardware may put a FIFO or a data mover behind it. Where the output is left open,
// synthesis removes all of this.
// Moves of a call that is cleared before they retire leave no record.
//
// Latency: 2 cycles from a move's retirement to its record. Throughput: one record per cycle.

// A record carries more than is known here.
// verilator lint_off UNUSEDSIGNAL

module unisono_move_trace
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_observe_pkg::*;
#(
  localparam int unsigned TimeWidth = 48
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [TimeWidth-1:0] cycle_i,

  // A slot has no program any more.
  input  logic     clear_valid_i,
  input  slot_t    clear_slot_i,

  // A move enters its window, in program order of its call. One without effect completes by itself.
  input  logic     entered_valid_i,
  input  move_id_t entered_id_i,
  input  move_t    entered_move_i,
  input  logic     entered_trivial_i,

  // The dispatcher: takes a move, gives a job of it to a lane, or puts it aside; never two of these for two moves at
  // once.
  input  logic     issued_valid_i,
  input  logic     job_valid_i,
  input  logic     park_valid_i,
  input  wait_e    park_cause_i,
  input  move_id_t dispatcher_id_i,

  input  logic     completed_valid_i,
  input  move_id_t completed_id_i,
  input  logic     retired_valid_i,
  input  move_id_t retired_id_i,

  // Of each slot's call.
  input  call_context_t       contexts_i [Calls],
  input  communicator_entry_t communicators_i [Calls],

  output logic         valid_o,
  output move_record_t record_o                  // but for the call's id
);

  localparam int unsigned Moves = Calls * Window;
  typedef logic [TimeWidth-1:0] time_t;

  // -------------------------------------------------------------------------------- what is known at once

  typedef struct packed {
    time_t entered;
    logic [31:0] index;
    func_e func;
    datatype_e dtype;
    logic [15:0] destination;
    logic [15:0] source;
    message_bytes_t bytes;
    logic receives;
    logic sends;
    logic reads0;
    logic reads1;
    logic writes;
    logic trivial;
  } entered_t;

  logic [31:0] index_q [Calls];
  always_ff @(posedge clk_i) begin
    for (int s = 0; s < int'(Calls); s++) begin
      if (!rst_ni || (clear_valid_i && clear_slot_i == slot_t'(s))) begin
        index_q[s] <= '0;
      end else if (entered_valid_i && entered_id_i.slot == slot_t'(s)) begin
        index_q[s] <= index_q[s] + 32'd1;
      end
    end
  end

  message_bytes_t bytes;
  always_comb begin
    case (datatype_bytes(entered_move_i.dtype))
      32'd2: bytes = {7'b0, entered_move_i.count, 1'b0};
      32'd4: bytes = {6'b0, entered_move_i.count, 2'b0};
      32'd8: bytes = {5'b0, entered_move_i.count, 3'b0};
      32'd16: bytes = {4'b0, entered_move_i.count, 4'b0};
      default: bytes = {8'b0, entered_move_i.count};
    endcase
  end

  entered_t entered, entered_word;
  assign entered = '{
    entered: cycle_i,
    index: index_q[entered_id_i.slot],
    func: entered_move_i.func,
    dtype: entered_move_i.dtype,
    destination: entered_move_i.remote.peer[15:0],
    source: entered_move_i.arrival.peer[15:0],
    bytes: bytes,
    receives: entered_move_i.op1.kind == OperandKindArrival,
    sends: entered_move_i.remote.kind != RemoteKindNone,
    reads0: entered_move_i.op0.kind == OperandKindMemory,
    reads1: entered_move_i.op1.kind == OperandKindMemory,
    writes: entered_move_i.local_.kind == OperandKindMemory,
    trivial: entered_trivial_i
  };

  unisono_ram_sdp #(.Width($bits(entered_t)), .Depth(Moves)) u_entered (
    .clk_i, .wr_en_i(entered_valid_i), .wr_addr_i(entered_id_i), .wr_data_i(entered),
    .rd_en_i(retired_valid_i), .rd_out_en_i(1'b1), .rd_addr_i(retired_id_i), .rd_data_o(entered_word)
  );

  // ------------------------------------------------------------------------------------------------ times

  time_t issued_word, began_word, completed_word;
  logic first_job;
  unisono_ram_sdp #(.Width(TimeWidth), .Depth(Moves)) u_issued (
    .clk_i, .wr_en_i(issued_valid_i), .wr_addr_i(dispatcher_id_i), .wr_data_i(cycle_i),
    .rd_en_i(retired_valid_i), .rd_out_en_i(1'b1), .rd_addr_i(retired_id_i), .rd_data_o(issued_word)
  );
  unisono_ram_sdp #(.Width(TimeWidth), .Depth(Moves)) u_began (
    .clk_i, .wr_en_i(first_job), .wr_addr_i(dispatcher_id_i), .wr_data_i(cycle_i),
    .rd_en_i(retired_valid_i), .rd_out_en_i(1'b1), .rd_addr_i(retired_id_i), .rd_data_o(began_word)
  );
  unisono_ram_sdp #(.Width(TimeWidth), .Depth(Moves)) u_completed (
    .clk_i, .wr_en_i(completed_valid_i), .wr_addr_i(completed_id_i), .wr_data_i(cycle_i),
    .rd_en_i(retired_valid_i), .rd_out_en_i(1'b1), .rd_addr_i(retired_id_i), .rd_data_o(completed_word)
  );

  // ----------------------------------------------------------------------------------- segments and waits

  typedef struct packed {
    logic [15:0] segments;
    logic [Waits-1:0] waits;
  } course_t;
  (* ram_style = "distributed" *) course_t courses [Moves];
  course_t course, course_new, course_word_q;
  assign course = courses[dispatcher_id_i];
  assign first_job = job_valid_i && course.segments == '0;
  always_comb begin
    course_new = course;
    if (issued_valid_i) course_new = '0;
    if (job_valid_i && course.segments != '1) course_new.segments = course.segments + 16'd1;
    if (park_valid_i) course_new.waits[park_cause_i] = 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (issued_valid_i || job_valid_i || park_valid_i) courses[dispatcher_id_i] <= course_new;
    course_word_q <= courses[retired_id_i];
  end

  // ----------------------------------------------------------------------------------------------- record

  logic retired_q;
  slot_t slot_q;
  time_t cycle_q;
  move_record_t record;

  always_comb begin
    record = '0;
    record.index = entered_word.index;
    record.entered = entered_word.entered;
    record.slot = 8'(slot_q);
    record.func = entered_word.func;
    record.dtype = 8'(entered_word.dtype);
    record.receives = entered_word.receives;
    record.sends = entered_word.sends;
    record.reads0 = entered_word.reads0;
    record.reads1 = entered_word.reads1;
    record.writes = entered_word.writes;
    record.destination = entered_word.sends ? entered_word.destination : '0;
    record.source = entered_word.receives ? entered_word.source : '0;
    record.bytes = entered_word.bytes;
    record.retired = cycle_q;
    record.communicator = communicators_i[slot_q].number;
    record.sequence_ = contexts_i[slot_q].sequence_;
    if (!entered_word.trivial) begin
      record.issued = issued_word;
      record.began = course_word_q.segments != '0 ? began_word : '0;
      record.completed = completed_word;
      record.segments = course_word_q.segments;
      record.waited_credit = course_word_q.waits[WaitCredit];
      record.waited_grant = course_word_q.waits[WaitGrant];
      record.waited_space = course_word_q.waits[WaitSpace];
      record.waited_arrival = course_word_q.waits[WaitArrival];
      record.waited_producer = course_word_q.waits[WaitProducer];
    end
  end

  always_ff @(posedge clk_i) begin
    retired_q <= rst_ni && retired_valid_i;
    slot_q <= retired_id_i.slot;
    if (retired_valid_i) cycle_q <= cycle_i;
    valid_o <= rst_ni && retired_q;
    if (retired_q) record_o <= record;
  end

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!issued_valid_i || !(job_valid_i || park_valid_i))
        else $error("%m: the dispatcher takes a move while it carries out another");
    end
  end
  `endif

endmodule
