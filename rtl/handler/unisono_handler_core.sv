// Executes a function of a handler, one instruction after the other, with the bits of switch/handler/interpreter.cpp.
//
// An instruction comes from the program's memory in the cycle after its address, and does its work from the registers
// to the registers: what follows it sees all of it. What it reads of memory and payload lands a cycle later, while the
// next one goes, if that does not read it. The address of the next one is known in its last cycle, also after a branch.
// The word behind it goes along in this cycle where unisono_handler_second can do it. docs/rtl/handler.md has a table
// of cycles.
//
// The budget is looked at before each instruction. A function that is stopped leaves what it has written.
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

  input  logic                   start_i,  // when it does not run
  input  function_e              function_i,
  input  logic [13:0]            entry_i,
  input  infos_t                 info_i,  // until the outcome
  input  logic [24:0]            memory_bytes_i,
  input  logic [31:0]            budget_i,
  output logic                   running_o,
  output logic                   tables_busy_o,  // entries are on their way to memory, also when no function runs
  output logic                   outcome_valid_o,
  input  logic                   outcome_ready_i,
  output outcome_t               outcome_o,

  output logic                   word_en_o,
  output logic [13:0]            word_address_o,
  input  instruction_t           word_i,  // a cycle later
  input  instruction_t           word_behind_i,

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
  localparam int unsigned Half = Columns > 1 ? Columns / 2 : 1;

  if (Columns == 0 || Columns > 16 || 16 % Columns != 0) begin : gen_bad
    $error("unisono_handler_core: Columns must be 1, 2, 4, 8 or 16");
  end

  typedef enum logic [1:0] {
    StateIdle = 2'd0,
    StateRun = 2'd1,
    StateEnd = 2'd2
  } state_e;

  state_e state_q;
  logic [13:0] word_q, next, then;  // the next one; the one that is asked for
  logic [31:0] executed_q;
  logic [6:0] count_q;  // cycles of this instruction; of output, pushes
  logic [16:0] written_q;
  outcome_t outcome_q;

  instruction_t word;
  work_e work;
  logic [1:0] size;
  assign word = word_i;
  assign work = work_of(word.op, word.element);
  assign size = size_of(word.element);

  logic run, spent, stalled, go, first, done, complete;
  stop_e stop;
  assign run = state_q == StateRun;
  assign first = count_q == '0;
  assign spent = executed_q == budget_i;
  assign go = run && !spent && !stalled;

  // Operands. A scalar is in column 0.
  cell_t number, sa, sb, sc, sd, second;
  cell_t [3:0] scalars, scalars_behind;
  cell_t [2:0][Columns-1:0] vectors;
  logic [BeatBits-1:0] beat, table_beat;
  logic [31:0] loop;
  assign number = {{32{word.imm[31]}}, word.imm};
  assign {sd, sc, sb, sa} = scalars;
  assign second = word.immediate ? number : sb;

  logic again, goes;
  assign again = word.op == OpAgain;

  // The word behind.
  instruction_t behind;
  logic behind_fits, along, behind_write, behind_jumps, behind_loop;
  cell_t behind_data;
  logic [31:0] behind_loop_data;
  assign behind = word_behind_i;
  assign along = complete && behind_fits;

  logic scalar_write, loop_write;
  cell_t scalar_data;
  logic [Columns-1:0] vector_write;
  logic land, waits;
  logic [5:0] land_to;
  logic [BeatBits-1:0] land_beat;
  logic [Columns-1:0] land_lanes;
  cell_t [Columns-1:0] landing;
  logic [BeatBits-1:0] to_beat;
  cell_t [Columns-1:0] vector_data;
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
    .scalar_i      ({behind.rd[5:0], behind.imm[13:8], behind.imm[5:0], behind.ra[5:0],
                     word.rd[5:0], word.imm[13:8], word.imm[5:0], word.ra[5:0]}),
    .scalar_o      ({scalars_behind, scalars}),
    .scalar_write_i(scalar_write),
    .scalar_to_i   (word.rd[5:0]),
    .scalar_data_i (scalar_data),
    .scalar_along_i     (along && behind_write),
    .scalar_along_to_i  (behind.rd[5:0]),
    .scalar_along_data_i(behind_data),
    .scalar_land_i      (land),
    .scalar_land_to_i   (land_to),
    .scalar_land_data_i (landing[0]),
    .vector_i      ({place_of(third, beat), place_of(word.imm[4:0], beat), place_of(word.ra[4:0], beat)}),
    .vector_o      (vectors),
    .vector_write_i(vector_write),
    .vector_to_i   (place_of(word.rd[4:0], to_beat)),
    .vector_data_i (vector_data),
    .vector_land_i      (land_lanes),
    .vector_land_to_i   (place_of(land_to[4:0], land_beat)),
    .vector_land_data_i (landing),
    .loop_i        (word.op == OpEnter || again ? word.rd[5:0] : behind.rd[5:0]),
    .loop_o        (loop),
    .loop_write_i  (loop_write),
    .loop_data_i   (loop_data)
  );

  // The columns' arithmetic.
  logic issue, divided;
  cell_t [Columns-1:0] a, b, c, results;
  logic [Columns-1:0] lent;  // adders that work for tables
  cell_t [Columns-1:0] lent_a, lent_b, sums;
  element_e lent_element;
  logic to_table;
  logic one_lane;  // a scalar comes from, or goes to, one lane
  logic [3:0] which;
  assign to_table = work == WorkTable || work == WorkReduce;
  assign one_lane = word.op == OpExtract || word.op == OpInsert;
  assign which = second[3:0];
  always_comb begin
    for (int unsigned l = 0; l < Columns; l++) begin
      a[l] = !word.vector_ || word.op == OpSplat || word.op == OpInsert ? sa : vectors[0][l];
      b[l] = word.vector_ ? vectors[1][l] : sb;
      if (word.immediate || word.op == OpSet || word.op == OpSetHigh) b[l] = number;
      if (word.op == OpInfo) b[l] = word.imm[2:0] < 3'd6 ? 64'(info_i[word.imm[2:0]]) : '0;
      c[l] = word.vector_ ? vectors[2][l] : word.op == OpSelect ? sc : sd;
    end
  end
  for (genvar l = 0; l < int'(Columns); l++) begin : gen_column
    logic column_divided;
    unisono_handler_lane #(
      .Elements(Elements)
    ) u_lane (
      .clk_i,
      .rst_ni,
      .issue_i       (issue && (l == 0 || word.vector_)),
      .work_i        (work),
      .op_i          (word.op),
      .element_i     (word.element),
      .aux_i         (word.aux),
      .a_i           (a[l]),
      .b_i           (b[l]),
      .c_i           (c[l]),
      .divided_o     (column_divided),
      .result_o      (results[l]),
      .lent_i        (lent[l]),
      .lent_element_i(lent_element),
      .lent_a_i      (lent_a[l]),
      .lent_b_i      (lent_b[l]),
      .sum_o         (sums[l])
    );
    if (l == 0) begin : gen_first
      assign divided = column_divided;
    end else begin : gen_other
      logic unused_column;
      assign unused_column = column_divided;
    end
  end

  // Some divisor is 0.
  logic by_zero;
  always_comb begin
    by_zero = 1'b0;
    for (int unsigned l = 0; l < Columns; l++) begin
      if ((l == 0 || word.vector_) && (b[l] & bits_of(size)) == '0) by_zero = word.op != OpDiv;
    end
  end

  // Addresses of memory and payload. `span` is how many bytes from there must be within it.
  cell_t offset, limit, remain;
  logic [7:0] span;
  logic outside;
  logic [4:0] present;  // lanes that the payload has
  assign offset = sa + number;
  assign limit = work == WorkTake ? 64'(info_i[InfoLength]) : 64'(memory_bytes_i);
  assign span = word.op == OpTakeLanes ? 8'd0 : (word.vector_ ? 8'd16 : 8'd1) << size;
  assign outside = 64'(span) > limit || offset > limit - 64'(span);
  assign remain = (limit - offset) >> size;
  assign present = word.op != OpTakeLanes || remain > 64'd16 ? 5'd16 : remain[4:0];

  // Elements next to one another, as in memory.
  function automatic logic [Window*8-1:0] packed_of(cell_t [Columns-1:0] lanes, logic [1:0] lane_size);
    packed_of = '0;
    for (int unsigned l = 0; l < Columns; l++) begin
      case (lane_size)
        2'd0: packed_of[8*l+:8] = lanes[l][7:0];
        2'd1: packed_of[16*l+:16] = lanes[l][15:0];
        2'd2: packed_of[32*l+:32] = lanes[l][31:0];
        default: packed_of[64*l+:64] = lanes[l];
      endcase
    end
  endfunction

  // Output.
  logic [4:0] wanted, allowed, fits;  // lanes in all
  logic [16:0] room;
  logic [4:0] at;  // first lane of this push
  logic [4:0] pushed, group;
  assign wanted = word.op == OpPut ? 5'd1 : second > 64'd16 ? 5'd16 : second[4:0];
  // Lanes that are written at once: those of 64 bytes.
  assign group = Columns > 8 && size != 2'd3 ? 5'd16 : 5'(Columns > 8 ? 8 : Columns);
  assign at = 5'(32'(count_q) * 32'(group));
  assign room = (17'(MostOutputBytes) - written_q) >> size;
  assign fits = room > 17'd16 ? 5'd16 : room[4:0];
  assign allowed = wanted - at > fits ? fits : wanted - at;  // of those to come
  assign pushed = allowed > group ? group : allowed;
  assign push_valid_o = go && work == WorkOutput;
  assign push_bytes_o = 7'(7'(pushed) << size);
  cell_t [Columns-1:0] leaving;
  always_comb begin
    leaving = vectors[0];
    if (word.op == OpPut) leaving[0] = sa;
    else if (Columns > 8 && count_q[0]) leaving[Half-1:0] = vectors[0][Columns-1-:Half];
    push_data_o = 512'(packed_of(leaving, size));
  end

  // Tables.
  logic table_ready, table_busy, table_done, table_beyond, table_rd, table_wr, into_scalar, at_once;
  logic [1:0] table_wr_size;
  logic [AddressBits-1:0] table_rd_address, table_wr_address;
  cell_t table_wr_data, table_sum;
  assign into_scalar = word.op == OpSpvaccXv || word.op == OpSum;
  // What lands goes to a table's lanes at once.
  cell_t [2:0][Columns-1:0] table_vectors;
  assign at_once = Beats == 1 && work == WorkTable && !into_scalar;
  always_comb begin
    table_vectors = vectors;
    for (int unsigned l = 0; l < Columns; l++) begin
      if (at_once && land_lanes[l] && land_to[4:0] == third) table_vectors[2][l] = landing[l];
      if (at_once && land_lanes[l] && land_to[4:0] == word.imm[4:0]) table_vectors[1][l] = landing[l];
    end
  end
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
    .over_i          (complete || !run),
    .scalars_i       (scalars),
    .vectors_i       (table_vectors),
    .memory_bytes_i,
    .ready_o         (table_ready),
    .busy_o          (table_busy),
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
      WorkLoad, WorkStore, WorkSum: stalled = table_busy;
      WorkReduce, WorkTable: stalled = !table_ready;
      default: stalled = 1'b0;
    endcase
    if (waits && (land || !at_once)) stalled = 1'b1;
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
    if (work == WorkOutput) beat = BeatBits'(32'(at) / Columns);
    to_beat = one_lane || work == WorkDivide ? beat : BeatBits'(back);
  end

  assign goes = word.aux[1] || (sa == '0) == word.aux[0];
  always_comb begin
    stop = StopNone;
    done = 1'b0;
    next = word_q + 14'd1;
    case (work)
      WorkFlow: begin
        done = 1'b1;
        if (word.op == OpJump || (word.op == OpBranch && goes)) next = word.imm[13:0];
        if (again && goes) begin
          next = word.imm[13:0];
          if (loop == '0) stop = StopLoopBound;
        end
      end
      WorkDivide: begin
        if (!waiting_q && by_zero) stop = StopDivide;
        done = divided && 7'(divide_beat_q) == beats - 7'd1;
      end
      WorkLoad, WorkTake: begin
        if (first && outside) stop = work == WorkLoad ? StopMemory : StopPayload;
        done = count_q == beats - 7'd1;
      end
      WorkStore: begin
        if (first && outside) stop = StopMemory;
        done = count_q == beats - 7'd1;
      end
      WorkOutput: begin
        done = push_ready_i && allowed == pushed;
        if (done && wanted - at > fits) stop = StopOutput;
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
  unisono_handler_second u_second (
    .first_i     (word),
    .word_i      (behind),
    .taken_i     (goes),
    .room_i      (executed_q + 32'd1 != budget_i),
    .land_i      (land),
    .land_to_i   (land_to),
    .scalars_i   (scalars_behind),
    .loop_i      (loop),
    .info_i,
    .fits_o      (behind_fits),
    .write_o     (behind_write),
    .data_o      (behind_data),
    .jumps_o     (behind_jumps),
    .loop_write_o(behind_loop),
    .loop_data_o (behind_loop_data)
  );

  // Registers.
  assign loop_write = (go && first && (word.op == OpEnter || (again && goes && loop != '0))) || (along && behind_loop);
  always_comb begin
    loop_data = behind_loop_data;
    if (again) loop_data = loop - 32'd1;
    else if (word.op == OpEnter) loop_data = word.imm;
  end
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

  // What memory and payload answer.
  logic fetch;
  assign fetch = go && (work == WorkLoad || work == WorkTake) && stop == StopNone;
  unisono_handler_landing #(
    .Columns(Columns)
  ) u_landing (
    .clk_i,
    .rst_ni,
    .fetch_i    (fetch),
    .take_i     (work == WorkTake),
    .word_i     (word),
    .beat_i     (BeatBits'(count_q)),
    .present_i  (present),
    .loaded_i   (rd_data_i),
    .taken_i    (take_data_i),
    .waits_o    (waits),
    .scalar_o   (land),
    .lanes_o    (land_lanes),
    .to_o       (land_to),
    .beat_o     (land_beat),
    .elements_o (landing)
  );

  // Memory and payload. A beat has `Columns` elements.
  logic [AddressBits-1:0] ahead;
  assign ahead = AddressBits'(32'(count_q) * Columns) << size;
  always_comb begin
    rd_en_o = table_rd || (fetch && work == WorkLoad);
    rd_address_o = table_rd ? table_rd_address : AddressBits'(offset) + ahead;
    take_en_o = fetch && work == WorkTake;
    take_address_o = 13'(offset) + 13'(ahead);
    wr_en_o = table_wr || (go && work == WorkStore && stop == StopNone);
    wr_address_o = table_wr ? table_wr_address : AddressBits'(offset) + ahead;
    wr_data_o = table_wr ? (Window * 8)'(table_wr_data) : packed_of(c, size);
    wr_mask_o = ~({Window{1'b1}} << (table_wr ? 32'd1 << table_wr_size : 32'(word.vector_ ? Columns : 1) << size));
  end

  // From word to word.
  assign word_en_o = start_i || complete;
  assign then = !along ? next : behind_jumps ? behind.imm[13:0] : word_q + 14'd2;
  assign word_address_o = start_i ? entry_i : then;
  assign tables_busy_o = table_busy;
  assign running_o = state_q != StateIdle;
  assign end_o = state_q == StateEnd && !outcome_valid_o;
  assign end_failed_o = outcome_q.stop != StopNone || outcome_q.verdict[31:1] != '0;
  assign outcome_o = outcome_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StateIdle;
      outcome_valid_o <= 1'b0;
      waiting_q <= 1'b0;
    end else begin
      case (state_q)
        StateIdle: if (start_i) state_q <= StateRun;
        StateRun: begin
          if (stop != StopNone || (complete && word.op == OpEnd)) state_q <= StateEnd;
          waiting_q <= go && work == WorkDivide && (waiting_q || issue) && !divided;
        end
        default: begin
          if (ended_i) outcome_valid_o <= 1'b1;
          if (outcome_valid_o && outcome_ready_i) begin
            outcome_valid_o <= 1'b0;
            state_q <= StateIdle;
          end
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StateIdle) begin
      word_q <= entry_i;
      executed_q <= '0;
      count_q <= '0;
      written_q <= '0;
      divide_beat_q <= '0;
      outcome_q.function_ <= function_i;
    end
    if (run) begin
      if (complete) begin
        word_q <= then;
        executed_q <= executed_q + (along ? 32'd2 : 32'd1);
        count_q <= '0;
        divide_beat_q <= '0;
      end else begin
        // A long wait does not come back to a beginning.
        if (go && (work == WorkOutput ? push_ready_i : count_q != '1)) count_q <= count_q + 7'd1;
        if (divided) divide_beat_q <= divide_beat_q + BeatBits'(1);
      end
      if (push_valid_o && push_ready_i) written_q <= written_q + 17'(push_bytes_o);
      outcome_q.stop <= stop;
      outcome_q.verdict <= stop == StopNone ? second[31:0] : '0;
      outcome_q.word <= word_q;
      outcome_q.executed <= executed_q + 32'(!spent);
    end
    if (end_o) outcome_q.output_bytes <= written_q;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && start_i) begin
      assert (state_q == StateIdle) else $error("%m: a function begins before the last ended");
    end
    if (rst_ni && go && first) begin
      assert (instruction_well_formed(word) && (op_types(word.op) >> word.element) % 2 == 1)
      else $error("%m: no instruction");
      assert (Elements[word.element]) else $error("%m: an element that is not built in");
    end
  end
`endif

endmodule
