// Custom-function unit of the microcontroller: its only way to the rest of the engine.
//
// Assembles moves. The firmware sets a field group of a move with one instruction; packing, the
// choice of the function and the bookkeeping of lists and counts happen here, so that a move costs
// a handful of instructions. Gives out work items, words of call descriptors and of the
// communicator table, and computes call signatures.
//
// Latency: an instruction takes effect and answers in the cycle after it was accepted. BuildEmit
// waits until the move before it was taken, ControlNext until there is work, GroupCovers one cycle
// more.
// Throughput: one instruction per cycle.
// Restrictions: one move is built at a time. A move that was begun before another may not be
// emitted after it; that is a fault (ErrorCodeInternal), as are a list beyond ListWords and an
// offset, count, peer or tag that a move has no bits for (ErrorCodeCapacity). After a fault nothing
// is emitted until ControlClear, and ControlNext answers with its code.
module unisono_cpu_port #(
    parameter int unsigned Communicators = 32,
    parameter int unsigned ListWords = 1024,
    parameter int unsigned CommunicatorAddressWidth = $clog2(Communicators) + 3,
    parameter int unsigned ListAddressWidth = $clog2(ListWords)
) (
    input logic clk_i,
    input logic rst_ni,

    // From the core.
    input  logic        command_valid_i,
    output logic        command_ready_o,
    input  logic [ 9:0] command_function_i,
    input  logic [31:0] command_first_i,
    input  logic [31:0] command_second_i,
    output logic        answer_valid_o,
    input  logic        answer_ready_i,
    output logic [31:0] answer_data_o,
    // It has asked for an item, and there is none.
    output logic        waits_o,

    // Work items.
    input  logic                  work_valid_i,
    output logic                  work_ready_o,
    input  unisono_cpu_pkg::work_t work_i,

    // The item taken last has been dealt with: its moves were taken, and the slot may get a further
    // item.
    output logic                                  step_valid_o,
    output logic [unisono_cpu_pkg::SlotWidth-1:0] step_slot_o,

    // By slot: it has room for one more step. The slot that was stepped last is stepped again
    // without an item if no item waits. Must count a move no later than the cycle after it was
    // taken. May be all zero.
    input logic [unisono_cpu_pkg::Slots-1:0] room_i,

    // Call descriptors: 64-bit words, in the cycle after their address.
    output logic [unisono_cpu_pkg::SlotWidth+3:0] descriptor_address_o,
    input  logic [                          63:0] descriptor_data_i,

    // Communicator table: 32-bit words, in the cycle after their address.
    output logic [CommunicatorAddressWidth-1:0] communicator_address_o,
    input  logic [                        31:0] communicator_data_i,

    // Moves. With `move_end_o` the program of the slot has ended before this beat, which holds no
    // move.
    output logic                                  move_valid_o,
    input  logic                                  move_ready_i,
    output unisono_spec_pkg::move_t               move_o,
    output logic [unisono_cpu_pkg::SlotWidth-1:0] move_slot_o,
    output logic                                  move_end_o,

    // Words of peer lists, before the move that names the list.
    output logic                                  list_valid_o,
    output logic [unisono_cpu_pkg::SlotWidth-1:0] list_slot_o,
    output logic [          ListAddressWidth-1:0] list_index_o,
    output logic [                          23:0] list_word_o,

    // What holds for a call, before its first move.
    output logic                                  context_valid_o,
    output logic [unisono_cpu_pkg::SlotWidth-1:0] context_slot_o,
    output unisono_cpu_pkg::context_t             context_o,

    // A call that is refused, or whose generation failed.
    output logic                                  fail_valid_o,
    output logic [unisono_cpu_pkg::SlotWidth-1:0] fail_slot_o,
    output unisono_spec_pkg::error_code_e         fail_code_o
);

  import unisono_spec_pkg::*;
  import unisono_cpu_pkg::*;

  if (Communicators < 2 || Communicators > 256 || (Communicators & (Communicators - 1)) != 0)
  begin : gen_bad_communicators
    $error("Communicators must be a power of two from 2 to 256");
  end
  if (ListWords < 128 || ListWords > 65536 || (ListWords & (ListWords - 1)) != 0)
  begin : gen_bad_list_words
    $error("ListWords must be a power of two from 128 to 65536");
  end

  // ----------------------------------------------------------------------------------- the command

  logic valid_q;
  instruction_t instruction_q;
  logic [2:0] group;
  logic [6:0] operation;
  logic [31:0] first, second;
  logic can_finish, finish, accept;

  assign {operation, group, first, second} = instruction_q;
  assign answer_valid_o = valid_q && can_finish;
  assign finish = answer_valid_o && answer_ready_i;
  assign command_ready_o = !valid_q || finish;
  assign accept = command_valid_i && command_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
    end else if (accept) begin
      valid_q <= 1'b1;
    end else if (finish) begin
      valid_q <= 1'b0;
    end
    if (accept) instruction_q <= {command_function_i, command_first_i, command_second_i};
  end

  logic is_control, is_next, is_build, is_emit, is_list, is_end, is_check, is_divide;
  assign is_control = valid_q && group == GroupControl;
  assign is_next = is_control && operation == ControlNext;
  assign is_end = is_control && operation == ControlEnd;
  assign is_build = valid_q && group == GroupBuild;
  assign is_emit = is_build && operation == BuildEmit;
  assign is_list = is_build && operation == BuildList;
  assign is_check = valid_q && group == GroupCheck;
  assign is_divide = is_check && operation == DivideQuotient;

  // ------------------------------------------------------------------------------------ work items

  logic there, again, takes, starts;
  work_t item;
  logic [SlotWidth-1:0] slot;
  logic emit_blocked, fault_q;
  error_code_e fault_code_q;
  assign emit_blocked = move_valid_o && !move_ready_i;

  unisono_cpu_work u_work (
    .clk_i, .rst_ni, .work_valid_i, .work_ready_o, .work_i, .room_i, .step_valid_o, .step_slot_o,
    .asks_i(is_next), .answered_i(is_next && finish),
    .ends_i(finish && is_control && (operation == ControlEnd || operation == ControlFail)),
    .fault_i(fault_q), .move_valid_i(move_valid_o), .blocked_i(emit_blocked),
    .there_o(there), .item_o(item), .again_o(again), .takes_o(takes), .slot_o(slot)
  );

  assign waits_o = is_next && !can_finish;
  assign starts = takes && item.kind == WorkStart;

  // --------------------------------------------------------------------- descriptor, communicators

  // The descriptor of a started call is read while the core waits for the item.
  logic looking, known, hit;
  logic [3:0] plan_word;
  logic [7:0] communicator;
  logic [$clog2(Plans)-1:0] plan;

  unisono_cpu_plans #(.Communicators(Communicators)) u_plans (
    .clk_i, .rst_ni,
    .starts_i(is_next && !emit_blocked && !fault_q && there && item.kind == WorkStart), .taken_i(takes),
    .looking_o(looking), .word_o(plan_word), .descriptor_i(descriptor_data_i), .state_i(communicator_data_i),
    .communicator_o(communicator), .known_o(known), .plan_o(plan), .hit_o(hit),
    .keeps_i(finish && is_control && operation == ControlKeep), .keep_place_i(first[$clog2(Plans)-1:0]),
    .forgets_i(finish && is_control && operation == ControlForget), .forget_mask_i(first[Plans-1:0])
  );

  // The address is held while an answer waits, so that the word stays at the memory's output.
  logic [2:0] look_group;
  logic [4:0] look_operation;
  assign look_group = command_ready_o ? command_function_i[2:0] : group;
  assign look_operation = command_ready_o ? command_function_i[7:3] : operation[4:0];

  always_comb begin
    descriptor_address_o = {slot, look_group == GroupCovers ? look_operation[3:0] : look_operation[4:1]};
    communicator_address_o = {communicator[$clog2(Communicators)-1:0], look_operation[2:0]};
    if (is_next) begin
      descriptor_address_o = {item.slot, plan_word};
      communicator_address_o[2:0] = CommunicatorState;
    end
  end

  // The comparison of 64 bits has a cycle of its own.
  logic compared_q;
  logic lacks_q;
  always_ff @(posedge clk_i) begin
    compared_q <= rst_ni && valid_q && group == GroupCovers && !finish;
    lacks_q <= descriptor_data_i < {second, first};
  end

  // --------------------------------------------------------------------------- counts of the slots

  logic [31:0] moves_q[Slots];
  logic [31:0] moves;
  logic [ListAddressWidth:0] list_end_q[Slots];
  logic [ListAddressWidth:0] list_end;
  assign moves = moves_q[slot];
  assign list_end = list_end_q[slot];

  // -------------------------------------------------------------------------------------- the move

  move_t built;
  logic [31:0] ticket;
  logic ticket_wrong, out_of_range;
  logic list_full, emits, ends;

  unisono_cpu_build u_build (
    .clk_i, .rst_ni, .valid_i(finish), .instruction_i(instruction_q), .move_o(built), .ticket_o(ticket),
    .stale_o(ticket_wrong), .range_o(out_of_range)
  );

  assign list_full = list_end[ListAddressWidth];
  assign emits = finish && is_emit && !ticket_wrong && !fault_q;
  assign ends = finish && is_end && !fault_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      move_valid_o <= 1'b0;
      move_end_o <= 1'b0;
    end else if (!emit_blocked) begin
      move_valid_o <= emits || ends;
      move_end_o <= ends;
    end
    if (!emit_blocked) begin
      move_o <= built;
      move_slot_o <= slot;
    end
  end

  always_ff @(posedge clk_i) begin
    list_valid_o <= rst_ni && finish && is_list && !list_full && !fault_q;
    list_slot_o <= slot;
    list_index_o <= list_end[ListAddressWidth-1:0];
    list_word_o <= first[23:0];
  end

  always_ff @(posedge clk_i) begin
    if (starts) begin
      moves_q[item.slot] <= '0;
      list_end_q[item.slot] <= '0;
    end else begin
      if (emits) moves_q[slot] <= moves + 1'b1;
      if (finish && is_list && !list_full) list_end_q[slot] <= list_end + 1'b1;
    end
  end

  // --------------------------------------------------------------------------- faults and failures

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fault_q <= 1'b0;
      fault_code_q <= ErrorCodeOk;
    end else if (finish && is_control && operation == ControlClear) begin
      fault_q <= 1'b0;
    end else if (!fault_q && finish && is_emit && ticket_wrong) begin
      fault_q <= 1'b1;
      fault_code_q <= ErrorCodeInternal;
    end else if (!fault_q && finish && (out_of_range || (is_list && list_full))) begin
      fault_q <= 1'b1;
      fault_code_q <= ErrorCodeCapacity;
    end
    fail_valid_o <= rst_ni && finish && is_control && operation == ControlFail;
    fail_slot_o <= slot;
    fail_code_o <= error_code_e'(first[15:0]);
  end

  // ------------------------------------------------------------------------- signature and context

  logic [31:0] signature;

  unisono_cpu_signature u_signature (
    .clk_i, .valid_i(finish && is_check), .operation_i(operation), .data_i({second, first}), .signature_o(signature)
  );

  logic [31:0] signed_q;
  always_ff @(posedge clk_i) begin
    if (finish && is_control && operation == ControlSign) signed_q <= first;
  end

  always_ff @(posedge clk_i) begin
    context_valid_o <= rst_ni && finish && is_control && operation == ControlContext;
    context_slot_o <= slot;
    context_o.signature <= signed_q;
    context_o.sequence_or_tag <= second;
    context_o.communicator <= communicator;
    context_o.algorithm <= first[15:8];
    context_o.space <= space_e'(first[1:0]);
    context_o.dtype <= datatype_e'(first[21:16]);
  end

  // -------------------------------------------------------------------------------------- division

  logic division_done;
  logic [63:0] quotient;
  logic [31:0] rest;

  unisono_cpu_divide u_divide (
    .clk_i, .rst_ni, .slot_i(slot), .total_valid_i(finish && is_check && operation == DivideTotal),
    .total_i({second, first}), .divide_i(is_divide), .parts_i(first), .done_o(division_done), .quotient_o(quotient),
    .rest_o(rest)
  );

  // ------------------------------------------------------------------------------------ the answer

  always_comb begin
    can_finish = 1'b1;
    if (is_next) can_finish = (there || fault_q || again) && !emit_blocked && !looking;
    if (is_emit || is_end) can_finish = !emit_blocked;
    if (group == GroupCovers) can_finish = compared_q;
    if (is_divide) can_finish = division_done;
  end

  logic [ 5:0] first_width;
  logic [31:0] first_reversed;
  always_comb begin
    first_width = '0;
    for (int unsigned i = 0; i < 32; i++) begin
      if (first[i]) first_width = 6'(i + 1);
      first_reversed[i] = first[31-i];
    end
  end

  logic [31:0] next_item;
  always_comb begin
    next_item = '0;
    if (fault_q) begin
      next_item[NextFaultCodeBit+:16] = fault_code_q;
      next_item[NextFaultBit] = 1'b1;
    end else begin
      next_item[1:0] = there ? item.kind : WorkMore;
      next_item[NextSlotBit+:SlotWidth] = there ? item.slot : slot;
      if (there && item.kind == WorkStart) begin
        next_item[NextPlanBit+:$clog2(Plans)] = plan;
        next_item[NextHitBit] = hit;
      end
    end
  end

  always_comb begin
    answer_data_o = '0;
    case (group)
      GroupControl: if (operation == ControlNext) answer_data_o = next_item;
      GroupBuild: begin
        case (operation)
          BuildBegin: answer_data_o = ticket;
          BuildList: answer_data_o = 32'(list_end);
          BuildMoves: answer_data_o = moves;
          default: ;
        endcase
      end
      GroupDescriptor: begin
        answer_data_o = operation[0] ? descriptor_data_i[63:32] : descriptor_data_i[31:0];
        if (operation == 7'd1) answer_data_o[31:DescriptorFlags] = '0;
      end
      GroupCommunicator: answer_data_o = known ? communicator_data_i : '0;
      GroupCheck: begin
        case (operation)
          DivideQuotient: answer_data_o = quotient[31:0];
          DivideHigh: answer_data_o = quotient[63:32];
          DivideRest: answer_data_o = rest;
          BitWidth: answer_data_o = 32'(first_width);
          BitReverse: answer_data_o = first_reversed;
          default: answer_data_o = signature;
        endcase
      end
      GroupCovers: answer_data_o = {31'd0, lacks_q};
      default: ;
    endcase
  end

  // ------------------------------------------------------------------------------------ assertions

`ifndef SYNTHESIS
  unisono_handshake_check #(
    .Width($bits(move_o) + $bits(move_slot_o))
  ) u_move_held (
    .clk_i,
    .rst_ni,
    .valid_i(move_valid_o),
    .ready_i(move_ready_i),
    .data_i ({move_o, move_slot_o})
  );
  always_ff @(posedge clk_i) begin
    if (rst_ni && move_valid_o && !move_end_o) begin
      emitted_well_formed : assert (move_well_formed(move_o));
    end
  end
`endif

endmodule
