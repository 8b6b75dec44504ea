// Executes a function of a handler, one instruction after the other, with the bits of switch/handler/interpreter.cpp.
//
// An instruction comes from the program's memory in the cycle after its address, and does its work from the registers
// to the registers: what follows it sees all of it. What it reads of memory and payload lands a cycle later, while the
// next one goes, if that does not read it. The address of the next one is known in its last cycle, also after a branch.
// The words behind it go along in this cycle where unisono_handler_second can do them, or are takes of lanes.
// docs/rtl/handler.md has a table of cycles.
//
// The budget is looked at before each instruction. A function that is stopped leaves what it has written. When it has
// ended, the next one may start while the outcome is offered.
module unisono_handler_core
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned   Columns = 16,  // lanes that are computed at once: 1, 2, 4, 8 or 16
  parameter int unsigned   MemoryBytes = 65536,
  parameter element_mask_t Elements = '1,
  parameter int unsigned   Banks = 16,  // of tables: 1, and with 16 columns 8 or 16
  localparam int unsigned  AddressBits = $clog2(MemoryBytes),
  localparam int unsigned  Window = Columns > 8 ? 8 * Columns : 64,
  localparam int unsigned  Groups = Window / 8,
  localparam int unsigned  RowBits = AddressBits - $clog2(Window)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   start_i,  // if `free_o`
  input  function_e              function_i,
  input  logic [13:0]            entry_i,
  input  infos_t                 info_i,  // from the next cycle on, while it runs
  input  logic [24:0]            memory_bytes_i,
  input  logic [31:0]            budget_i,
  output logic                   running_o,
  output logic                   free_o,  // none runs, or the one that does is over in this cycle
  output logic                   over_o,  // it is over in this cycle
  output logic                   last_o,  // with `over_o`: it was stopped, or gave another verdict than 0
  output logic                   tables_busy_o,  // entries are on their way to memory, also when no function runs
  output logic                   outcome_valid_o,
  input  logic                   outcome_ready_i,
  output outcome_t               outcome_o,

  output logic                   word_en_o,
  output logic [13:0]            word_address_o,
  input  instruction_t [Along:0] words_i,  // a cycle later: it and those behind it

  output logic                   rd_en_o,
  output logic [AddressBits-1:0] rd_address_o,
  input  logic [Window*8-1:0]    rd_data_i,  // a cycle later
  output logic                   wr_en_o,
  output logic [AddressBits-1:0] wr_address_o,
  output logic [Window-1:0]      wr_mask_o,
  output logic [Window*8-1:0]    wr_data_o,

  // Instead of all that: groups of 8 bytes by themselves.
  output logic                   groups_o,
  output logic [Groups-1:0]      group_rd_en_o,
  output logic [Groups-1:0][RowBits-1:0] group_rd_row_o,
  input  cell_t [Groups-1:0]     group_rd_data_i,  // a cycle later
  output logic [Groups-1:0][7:0] group_wr_mask_o,
  output logic [Groups-1:0][RowBits-1:0] group_wr_row_o,
  output cell_t [Groups-1:0]     group_wr_data_o,

  output logic                   take_en_o,
  output logic [12:0]            take_address_o,
  input  logic [Window*8-1:0]    take_data_i,  // a cycle later

  output logic                   push_valid_o,
  input  logic                   push_ready_i,
  output logic [6:0]             push_bytes_o,
  output logic [511:0]           push_data_o,
  output logic                   end_o,
  output logic                   end_failed_o,
  input  logic                   ended_i
);

  localparam int unsigned Beats = 16 / Columns;
  localparam int unsigned BeatBits = Beats > 1 ? $clog2(Beats) : 1;
  localparam int unsigned PlaceBits = 5 + $clog2(Beats);

  if (Columns == 0 || Columns > 16 || 16 % Columns != 0) begin : gen_bad
    $error("unisono_handler_core: Columns must be 1, 2, 4, 8 or 16");
  end

  logic run_q;
  logic [13:0] word_q, next, then;  // the next one; the one that is asked for
  logic [31:0] executed_q;
  logic [6:0] count_q;  // cycles of this instruction; of output, pushes
  logic [16:0] written;

  instruction_t word;
  work_e work;
  assign word = words_i[0];
  assign work = work_of(word.op, word.element);

  logic spent, stalled, go, first, done, complete, last;
  stop_e stop;
  assign first = count_q == '0;
  assign spent = executed_q == budget_i;
  assign go = run_q && !spent && !stalled;

  // A scalar is in column 0.
  cell_t sa, second;
  cell_t [3:0] scalars;
  cell_t [Along-1:0][AlongReads-1:0] scalars_along;
  cell_t [2:0][Columns-1:0] vectors;
  logic [BeatBits-1:0] beat, table_beat;
  logic [31:0] loop;
  assign sa = scalars[0];
  assign second = word.immediate ? {{32{word.imm[31]}}, word.imm} : scalars[1];

  logic again, goes;
  assign again = word.op == OpAgain;
  assign goes = word.aux[1] || (sa == '0) == word.aux[0];

  // Those that go along.
  logic [Along-1:0] along, along_writes;
  logic [Along-1:0][AlongReads-1:0][5:0] along_reads;
  logic [Along-1:0][5:0] along_to;
  cell_t [Along-1:0] along_data;
  logic along_jumps, take_free, take_fits;
  logic [13:0] along_target;

  logic scalar_write, loop_write, land, waits, behind_waits;
  cell_t scalar_data;
  logic [Columns-1:0] vector_write;
  logic [1:0][5:0] land_to;
  logic [1:0][BeatBits-1:0] land_beat;
  logic [1:0][Columns-1:0] land_lanes;
  cell_t [1:0][Columns-1:0] landing;
  logic [BeatBits-1:0] to_beat;
  cell_t [Columns-1:0] vector_data;
  logic [5:0] loop_which;
  logic [31:0] loop_data;

  function automatic logic [PlaceBits-1:0] place_of(logic [4:0] register, logic [BeatBits-1:0] which);
    return Beats == 1 ? PlaceBits'(register) : PlaceBits'({register, which});
  endfunction

  logic [4:0] third;
  assign third = word.op == OpSelect ? word.imm[12:8] : word.rd[4:0];
  unisono_handler_registers #(
    .Columns(Columns)
  ) u_registers (
    .clk_i,
    .clear_i       (start_i),
    .scalar_i      ({along_reads, word.rd[5:0], word.imm[13:8], word.imm[5:0], word.ra[5:0]}),
    .scalar_o      ({scalars_along, scalars}),
    .scalar_write_i({land, along_writes, scalar_write}),
    .scalar_to_i   ({land_to[0], along_to, word.rd[5:0]}),
    .scalar_data_i ({landing[0][0], along_data, scalar_data}),
    .vector_i      ({place_of(third, beat), place_of(word.imm[4:0], beat), place_of(word.ra[4:0], beat)}),
    .vector_o      (vectors),
    .vector_write_i({land_lanes, vector_write}),
    .vector_to_i   ({place_of(land_to[1][4:0], land_beat[1]), place_of(land_to[0][4:0], land_beat[0]),
                     place_of(word.rd[4:0], to_beat)}),
    .vector_data_i ({landing, vector_data}),
    .loop_i        (loop_which),
    .loop_o        (loop),
    .loop_write_i  (loop_write),
    .loop_data_i   (loop_data)
  );

  // The columns' arithmetic.
  logic issue, divided, by_zero, outside;
  cell_t [Columns-1:0] results, stored;
  logic [Columns-1:0] lent;  // adders that work for tables
  cell_t [Columns-1:0] lent_a, lent_b, sums;
  element_e lent_element;
  logic to_table;
  logic one_lane;  // a scalar comes from, or goes to, one lane
  logic [3:0] which;
  assign to_table = work == WorkTable || work == WorkReduce;
  assign one_lane = word.op == OpExtract || word.op == OpInsert;
  assign which = second[3:0];
  unisono_handler_columns #(
    .Columns (Columns),
    .Elements(Elements)
  ) u_columns (
    .clk_i,
    .rst_ni,
    .word_i        (word),
    .work_i        (work),
    .info_i,
    .scalars_i     (scalars),
    .vectors_i     (vectors),
    .issue_i       (issue),
    .by_zero_o     (by_zero),
    .divided_o     (divided),
    .third_o       (stored),
    .results_o     (results),
    .lent_i        (lent),
    .lent_element_i(lent_element),
    .lent_a_i      (lent_a),
    .lent_b_i      (lent_b),
    .sums_o        (sums)
  );

  // Output.
  logic pushes_done, pushes_beyond;
  logic [BeatBits-1:0] push_beat;
  unisono_handler_push #(
    .Columns(Columns)
  ) u_push (
    .clk_i,
    .clear_i     (start_i),
    .put_i       (word.op == OpPut),
    .element_i   (word.element),
    .go_i        (go && work == WorkOutput),
    .count_i     (count_q),
    .scalar_i    (sa),
    .second_i    (second),
    .vector_i    (vectors[0]),
    .beat_o      (push_beat),
    .done_o      (pushes_done),
    .beyond_o    (pushes_beyond),
    .written_o   (written),
    .push_valid_o,
    .push_ready_i,
    .push_bytes_o,
    .push_data_o
  );

  // Tables.
  logic table_ready, table_done, table_beyond, table_rd, table_wr, into_scalar, at_once;
  logic [1:0] table_wr_size;
  logic [AddressBits-1:0] table_rd_address, table_wr_address;
  cell_t table_wr_data, table_sum;
  assign into_scalar = word.op == OpSpvaccXv || word.op == OpSum;
  unisono_handler_tables #(
    .Columns    (Columns),
    .MemoryBytes(MemoryBytes),
    .Banks      (Banks)
  ) u_tables (
    .clk_i,
    .rst_ni,
    .op_i            (word.op),
    .element_i       (word.element),
    .go_i            (go && to_table),
    .over_i          (complete || !run_q),
    .scalars_i       (scalars),
    .vectors_i       (vectors),
    .lanes_of_i      ({word.imm[4:0], third}),
    .land_lanes_i    (land_lanes),
    .land_to_i       (land_to),
    .landing_i       (landing),
    .at_once_o       (at_once),
    .memory_bytes_i,
    .ready_o         (table_ready),
    .busy_o          (tables_busy_o),
    .beat_o          (table_beat),
    .done_o          (table_done),
    .beyond_o        (table_beyond),
    .sum_o           (table_sum),
    .lent_o          (lent),
    .lent_element_o  (lent_element),
    .lent_a_o        (lent_a),
    .lent_b_o        (lent_b),
    .sums_i          (sums),
    .rd_en_o         (table_rd),
    .rd_address_o    (table_rd_address),
    .rd_data_i       (rd_data_i[63:0]),
    .wr_en_o         (table_wr),
    .wr_address_o    (table_wr_address),
    .wr_size_o       (table_wr_size),
    .wr_data_o       (table_wr_data),
    .groups_o,
    .group_rd_en_o,
    .group_rd_row_o,
    .group_rd_data_i,
    .group_wr_mask_o,
    .group_wr_row_o,
    .group_wr_data_o
  );

  // While a table is worked on, its memory and the adders are not there for others.
  always_comb begin
    case (work)
      WorkLoad, WorkStore, WorkSum: stalled = tables_busy_o;
      WorkReduce, WorkTable: stalled = !table_ready;
      default: stalled = 1'b0;
    endcase
    if (waits && (land || !at_once)) stalled = 1'b1;
    if (behind_waits && !at_once) stalled = 1'b1;
  end

  // What this cycle does.
  logic [6:0] beats, latency, back;  // beats in all; cycles from a beat's operands to its result; the beat of results
  logic waiting_q;  // of a division
  logic [BeatBits-1:0] divide_beat_q;
  logic returns;
  assign beats = word.vector_ && !one_lane ? 7'(Beats) : 7'd1;
  assign latency = 7'(latency_of(work));
  assign back = count_q - latency;
  assign returns = count_q >= latency;
  always_comb begin
    beat = BeatBits'(count_q);
    if (one_lane) beat = BeatBits'(32'(which) / Columns);
    if (to_table) beat = table_beat;
    if (work == WorkDivide) beat = divide_beat_q;
    if (work == WorkOutput) beat = push_beat;
    to_beat = one_lane || work == WorkDivide ? beat : BeatBits'(back);
  end

  always_comb begin
    stop = StopNone;
    done = 1'b0;
    next = word_q + 14'd1;
    case (work)
      WorkFlow: begin
        done = 1'b1;
        if (word.op == OpJump || ((word.op == OpBranch || again) && goes)) next = word.imm[13:0];
        if (again && goes && loop == '0) stop = StopLoopBound;
      end
      WorkDivide: begin
        if (!waiting_q && by_zero) stop = StopDivide;
        done = divided && 7'(divide_beat_q) == beats - 7'd1;
      end
      WorkLoad, WorkStore, WorkTake: begin
        if (first && outside) stop = work == WorkTake ? StopPayload : StopMemory;
        done = count_q == beats - 7'd1;
      end
      WorkOutput: begin
        done = pushes_done;
        if (done && pushes_beyond) stop = StopOutput;
      end
      WorkReduce, WorkTable: begin
        done = table_done;
        if (done && table_beyond) stop = StopMemory;
      end
      default: done = returns && back == beats - 7'd1;
    endcase
    if (!go) stop = StopNone;  // operands may not be there
    if (spent) stop = StopBudget;
  end
  assign complete = go && done && stop == StopNone;

  unisono_handler_along u_along (
    .words_i,
    .complete_i  (complete),
    .goes_i      (goes),
    .true_i      (results[0][0]),
    .left_i      (budget_i - executed_q),
    .land_i      (land),
    .land_to_i   (land_to[0]),
    .reads_o     (along_reads),
    .scalars_i   (scalars_along),
    .info_i,
    .take_free_o (take_free),
    .take_fits_i (take_fits),
    .along_o     (along),
    .writes_o    (along_writes),
    .to_o        (along_to),
    .data_o      (along_data),
    .jumps_o     (along_jumps),
    .target_o    (along_target),
    .loop_o      (loop_which),
    .loop_i      (loop),
    .loop_first_i(go && first),
    .loop_write_o(loop_write),
    .loop_data_o (loop_data)
  );

  assign issue = go && (work == WorkDivide ? !waiting_q && !by_zero : count_q < beats);
  always_comb begin
    scalar_write = 1'b0;
    vector_write = '0;
    scalar_data = results[0];
    vector_data = results;
    case (work)
      WorkAlu, WorkSum, WorkMultiply, WorkConvert: begin
        scalar_write = go && returns && (!word.vector_ || word.op == OpExtract);
        if (word.op == OpExtract) scalar_data = vectors[0][32'(which)%Columns];
        for (int unsigned l = 0; l < Columns; l++) begin
          vector_write[l] = go && returns && word.vector_ && word.op != OpExtract
                         && (word.op != OpInsert || 32'(which) % Columns == l);
        end
      end
      WorkDivide: begin
        scalar_write = go && divided && !word.vector_;
        if (go && divided && word.vector_) vector_write = '1;
      end
      WorkReduce, WorkTable: begin
        scalar_write = go && done && into_scalar;
        scalar_data = table_sum;
      end
      default: ;
    endcase
  end

  // Memory and payload.
  unisono_handler_access #(
    .Columns    (Columns),
    .MemoryBytes(MemoryBytes)
  ) u_access (
    .clk_i,
    .rst_ni,
    .word_i            (word),
    .beat_i            (count_q),
    .base_i            (sa),
    .stored_i          (stored),
    .go_i              (go && stop == StopNone),
    .outside_o         (outside),
    .behind_i          (words_i[1]),
    .behind_base_i     (scalars_along[0][0]),
    .behind_go_i       (complete && take_free),
    .behind_fits_o     (take_fits),
    .length_i          (info_i[InfoLength]),
    .memory_bytes_i,
    .waits_o           (waits),
    .behind_waits_o    (behind_waits),
    .land_scalar_o     (land),
    .land_lanes_o      (land_lanes),
    .land_to_o         (land_to),
    .land_beat_o       (land_beat),
    .landing_o         (landing),
    .table_rd_i        (table_rd),
    .table_rd_address_i(table_rd_address),
    .table_wr_i        (table_wr),
    .table_wr_address_i(table_wr_address),
    .table_wr_size_i   (table_wr_size),
    .table_wr_data_i   (table_wr_data),
    .rd_en_o,
    .rd_address_o,
    .rd_data_i,
    .wr_en_o,
    .wr_address_o,
    .wr_mask_o,
    .wr_data_o,
    .take_en_o,
    .take_address_o,
    .take_data_i
  );

  // From word to word.
  assign word_en_o = start_i || complete;
  assign then = along_jumps ? along_target : along[0] ? word_q + 14'd2 + 14'(along[1]) : next;
  assign word_address_o = start_i ? entry_i : then;

  assign last = run_q && (stop != StopNone || (complete && word.op == OpEnd));
  unisono_handler_ending u_ending (
    .clk_i,
    .rst_ni,
    .start_i,
    .function_i,
    .run_i     (run_q),
    .last_i    (last),
    .stop_i    (stop),
    .verdict_i (second[31:0]),
    .word_i    (word_q),
    .executed_i(executed_q + 32'(!spent)),
    .written_i (written),
    .end_o,
    .end_failed_o,
    .ended_i,
    .over_o,
    .fails_o   (last_o),
    .outcome_valid_o,
    .outcome_ready_i,
    .outcome_o
  );
  assign running_o = run_q || end_o;
  assign free_o = !running_o || over_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      run_q <= 1'b0;
      waiting_q <= 1'b0;
    end else begin
      run_q <= start_i || (run_q && !last);
      waiting_q <= go && work == WorkDivide && (waiting_q || issue) && !divided;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i || complete) begin
      word_q <= word_address_o;
      executed_q <= start_i ? '0 : executed_q + 32'd1 + 32'(along[0]) + 32'(along[1]);
      count_q <= '0;
      divide_beat_q <= '0;
    end else begin
      // A long wait does not come back to a beginning.
      if (go && (work == WorkOutput ? push_ready_i : count_q != '1)) count_q <= count_q + 7'd1;
      if (divided) divide_beat_q <= divide_beat_q + BeatBits'(1);
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && start_i) begin
      assert (free_o) else $error("%m: a function begins before the last ended");
    end
    if (rst_ni && go && first) begin
      assert (instruction_well_formed(word) && (op_types(word.op) >> word.element) % 2 == 1)
      else $error("%m: no instruction");
      assert (Elements[word.element]) else $error("%m: an element that is not built in");
    end
  end
`endif

endmodule
