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

  // CRC-32C, reflected: the register after one more bit.
  function automatic logic [31:0] crc_bits(logic [31:0] state, logic [63:0] data, int bits);
    logic [31:0] value;
    value = state;
    for (int i = 0; i < 64; i++) begin
      if (i < bits) begin
        value = {1'b0, value[31:1]} ^ ((value[0] ^ data[i]) ? 32'h82F6_3B78 : 32'h0);
      end
    end
    return value;
  endfunction

  // ----------------------------------------------------------------------------------- the command

  logic        valid_q;
  logic [ 2:0] group_q;
  logic [ 6:0] operation_q;
  logic [31:0] first_q;
  logic [31:0] second_q;

  logic can_finish;
  logic finish;
  logic accept;

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
    if (accept) begin
      group_q <= command_function_i[2:0];
      operation_q <= command_function_i[9:3];
      first_q <= command_first_i;
      second_q <= command_second_i;
    end
  end

  // ------------------------------------------------------------------------------------ work items

  logic  work_valid_q;
  work_t work_q;
  logic  take_work;

  assign work_ready_o = !work_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      work_valid_q <= 1'b0;
    end else if (work_valid_i && work_ready_o) begin
      work_valid_q <= 1'b1;
    end else if (take_work) begin
      work_valid_q <= 1'b0;
    end
    if (work_valid_i && work_ready_o) work_q <= work_i;
  end

  logic emit_blocked;
  assign emit_blocked = move_valid_o && !move_ready_i;

  logic [SlotWidth-1:0] slot_q;
  logic fault_q;
  error_code_e fault_code_q;

  logic is_next;
  assign is_next = valid_q && group_q == GroupControl && operation_q == ControlNext;
  assign take_work = is_next && finish && !fault_q && work_valid_q;
  assign waits_o = is_next && !can_finish;

  always_ff @(posedge clk_i) begin
    if (take_work && work_q.kind != WorkControl) slot_q <= work_q.slot;
    if (!rst_ni) slot_q <= '0;
  end

  logic stepping_q;
  logic step_done;
  logic step_again;
  logic ended_q;
  // Moves that `room_i` may not know of yet.
  logic [1:0] settled_q;
  always_ff @(posedge clk_i) begin
    settled_q <= move_valid_o || !rst_ni ? 2'b00 : {settled_q[0], 1'b1};
  end
  assign step_again = stepping_q && !ended_q && !work_valid_q && room_i[slot_q] && settled_q[1] &&
                      !move_valid_o;
  assign step_done = is_next && stepping_q && !fault_q && !emit_blocked && !step_again;

  // A program that has ended, or a call that has failed, is not stepped again.
  always_ff @(posedge clk_i) begin
    if (take_work) begin
      ended_q <= 1'b0;
    end else if (finish && group_q == GroupControl &&
                 (operation_q == ControlEnd || operation_q == ControlFail)) begin
      ended_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      stepping_q <= 1'b0;
    end else if (take_work) begin
      stepping_q <= work_q.kind != WorkControl;
    end else if (step_done) begin
      stepping_q <= 1'b0;
    end
    step_valid_o <= rst_ni && step_done;
    step_slot_o <= slot_q;
  end

  // --------------------------------------------------------------------- descriptor, communicators

  // What decides which moves a call has. The firmware keeps plans of the last calls; their keys are
  // here.
  typedef struct packed {
    logic [63:0] count;
    logic [31:0] state;
    logic [31:0] root;
    logic [31:0] communicator;
    logic [DescriptorFlags-1:0] flags;
    logic [31:0] head;
  } key_t;

  key_t keys_q[Plans];
  logic [Plans-1:0] key_known_q;
  key_t key_q;
  key_t key_there_q;
  logic [$clog2(Plans)-1:0] plan;
  logic hit_q;

  // Reads the descriptor of a started call while the core waits for the item.
  localparam logic [2:0] LookHead = 3'd0;
  localparam logic [2:0] LookPeers = 3'd1;
  localparam logic [2:0] LookCount = 3'd2;
  localparam logic [2:0] LookState = 3'd3;
  localparam logic [2:0] LookKey = 3'd4;
  localparam logic [2:0] LookCompare = 3'd5;
  localparam logic [2:0] LookDone = 3'd6;

  logic looking;
  logic [2:0] look_q;
  logic known_q;
  assign looking = is_next && !emit_blocked && !fault_q && work_valid_q &&
                   work_q.kind == WorkStart && look_q != LookDone;

  // Counts are often multiples of powers of two, and roots small.
  logic [15:0] mixed;
  assign mixed = key_q.count[15:0] ^ key_q.count[31:16] ^ key_q.root[15:0] ^
                 {key_q.head[3:0], key_q.head[7:4], key_q.head[19:16], key_q.head[27:24]} ^
                 {key_q.communicator[7:0], 8'd0};
  assign plan = mixed[3:0] ^ mixed[7:4] ^ mixed[11:8] ^ mixed[15:12];

  always_ff @(posedge clk_i) begin
    if (!rst_ni || take_work) begin
      look_q <= LookHead;
    end else if (looking) begin
      look_q <= look_q + 1'b1;
    end
    if (looking) begin
      case (look_q)
        LookPeers: {key_q.flags, key_q.head} <= descriptor_data_i[32+DescriptorFlags-1:0];
        LookCount: {key_q.root, key_q.communicator} <= descriptor_data_i;
        LookState: begin
          key_q.count <= descriptor_data_i;
          known_q <= key_q.communicator < 32'(Communicators);
        end
        LookKey: key_q.state <= known_q ? communicator_data_i : '0;
        LookCompare: begin
          // Wide, so in two steps: what is there, and whether it is the same.
          key_there_q <= keys_q[plan];
          hit_q <= key_known_q[plan];
        end
        default: ;
      endcase
    end
    if (finish && group_q == GroupControl && operation_q == ControlKeep) begin
      keys_q[first_q[$clog2(Plans)-1:0]] <= key_q;
    end
    if (!rst_ni) begin
      key_known_q <= '0;
    end else if (finish && group_q == GroupControl && operation_q == ControlKeep) begin
      key_known_q[first_q[$clog2(Plans)-1:0]] <= 1'b1;
    end else if (finish && group_q == GroupControl && operation_q == ControlForget) begin
      key_known_q <= key_known_q & ~first_q[Plans-1:0];
    end
  end

  // The address is held while an answer waits, so that the word stays at the memory's output.
  logic [2:0] look_group;
  logic [4:0] look_operation;
  assign look_group = command_ready_o ? command_function_i[2:0] : group_q;
  assign look_operation = command_ready_o ? command_function_i[7:3] : operation_q[4:0];

  always_comb begin
    descriptor_address_o = {
      slot_q, look_group == GroupCovers ? look_operation[3:0] : look_operation[4:1]
    };
    communicator_address_o = {
      key_q.communicator[$clog2(Communicators)-1:0], look_operation[2:0]
    };
    if (is_next) begin
      descriptor_address_o = {work_q.slot, look_q == LookCount ? 4'd3 : {3'd0, look_q[0]}};
      communicator_address_o[2:0] = CommunicatorState;
    end
  end

  // The comparison of 64 bits has a cycle of its own.
  logic compared_q;
  logic lacks_q;
  always_ff @(posedge clk_i) begin
    compared_q <= rst_ni && valid_q && group_q == GroupCovers && !finish;
    lacks_q <= descriptor_data_i < {second_q, first_q};
  end

  // --------------------------------------------------------------------------- counts of the slots

  logic [31:0] moves_q[Slots];
  logic [31:0] moves;
  logic [ListAddressWidth:0] list_end_q[Slots];
  logic [ListAddressWidth:0] list_end;
  assign moves = moves_q[slot_q];
  assign list_end = list_end_q[slot_q];

  // -------------------------------------------------------------------------------------- the move

  move_t       build_q;
  func_e       call_func_q;
  logic        override_q;
  logic        open_q;
  logic [31:0] ticket_q;

  logic is_build;
  logic is_emit;
  logic is_list;
  logic is_end;
  logic ticket_wrong;
  logic list_full;
  logic emits;
  logic ends;

  assign is_build = valid_q && group_q == GroupBuild;
  assign is_emit = is_build && operation_q == BuildEmit;
  assign is_list = is_build && operation_q == BuildList;
  assign is_end = valid_q && group_q == GroupControl && operation_q == ControlEnd;
  assign ticket_wrong = !open_q || first_q != ticket_q;
  assign list_full = list_end[ListAddressWidth];
  assign emits = finish && is_emit && !ticket_wrong && !fault_q;
  assign ends = finish && is_end && !fault_q;

  logic [47:0] offset;
  logic place_indirect;
  region_e place_region;
  assign offset = {second_q[15:0], first_q};
  assign place_indirect = operation_q[6] ? second_q[31] : operation_q[5];
  assign place_region = region_e'(operation_q[6] ? second_q[28:24] : {2'b00, operation_q[4:2]});

  peer_mode_e peer_mode;
  assign peer_mode = peer_mode_e'(operation_q[3:2]);

  operand_t place;
  always_comb begin
    place = '0;
    place.kind = OperandKindMemory;
    place.region = place_region;
    place.indirect = place_indirect;
    place.offset = offset;
  end

  operand_t stream;
  always_comb begin
    stream = '0;
    stream.kind = OperandKindStream;
    stream.offset = {16'd0, first_q};
  end

  // Bit d-1 for a distance d of 1 to 32, and all bits below it.
  logic [31:0] distance_bit;
  logic [31:0] distance_mask;
  logic distance_counts;
  assign distance_counts = first_q - 32'd1 < 32'd32;
  always_comb begin
    for (int unsigned i = 0; i < 32; i++) begin
      distance_bit[i]  = distance_counts && first_q[5:0] == 6'(i + 1);
      distance_mask[i] = first_q > 32'(i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (finish) begin
      unique case (group_q)
        GroupPlace: begin
          unique case (operation_q[1:0])
            PlaceTake: build_q.op0 <= place;
            PlaceWith: build_q.op1 <= place;
            PlaceKeep: build_q.local_ <= place;
            default: begin
              build_q.remote_address.offset <= offset;
              if (place_indirect) begin
                build_q.remote_address.result_region <= place_region;
              end else begin
                build_q.remote_address.region <= place_region;
              end
            end
          endcase
        end
        GroupPeer: begin
          if (operation_q[0]) begin
            build_q.remote <= '{
                kind: operation_q[1:0] == PeerSend ? RemoteKindMessage : RemoteKindMemory,
                cast: CastNone,
                peer: first_q[23:0],
                mode: peer_mode,
                tag: second_q[23:0],
                default: '0
            };
          end else begin
            build_q.op1.kind <=
                operation_q[1:0] == PeerArrive ? OperandKindArrival : OperandKindRemoteMemory;
            build_q.arrival <= '{
                peer: first_q[23:0],
                mode: peer_mode,
                tag: second_q[23:0],
                default: '0
            };
          end
        end
        GroupBuild: begin
          case (operation_q)
            BuildBegin: begin
              build_q <= '0;
              build_q.kind <= MoveKindMove;
              build_q.dtype <= datatype_e'(first_q[21:16]);
              call_func_q <= func_e'(first_q[15:8]);
              override_q <= 1'b0;
            end
            BuildCount, BuildCountIndirect: begin
              build_q.count <= {second_q[7:0], first_q};
              if (operation_q == BuildCountIndirect) build_q.count_indirect <= 1'b1;
            end
            BuildSignal: build_q.signal <= 1'b1;
            BuildSwap: build_q.swap <= first_q[0];
            BuildAfter: build_q.dependencies <= build_q.dependencies | distance_bit;
            BuildAfterAll: build_q.dependencies <= build_q.dependencies | distance_mask;
            BuildStreamAfter: begin
              if (first_q[5:0] != '0) begin
                if (build_q.segment_dependency0 == '0) begin
                  build_q.segment_dependency0 <= first_q[5:0];
                end else begin
                  build_q.segment_dependency1 <= first_q[5:0];
                end
              end
            end
            BuildFunction: begin
              call_func_q <= func_e'(first_q[7:0]);
              override_q <= 1'b1;
            end
            BuildTakeStream: build_q.op0 <= stream;
            BuildKeepStream: build_q.local_ <= stream;
            default: ;
          endcase
        end
        default: ;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q   <= 1'b0;
      ticket_q <= '0;
    end else if (finish && is_build) begin
      if (operation_q == BuildBegin) begin
        open_q   <= 1'b1;
        ticket_q <= ticket_q + 1'b1;
      end
      if (operation_q == BuildEmit) open_q <= 1'b0;
    end
  end

  // Two operands, or several messages or places for op1, are combined with the call's function.
  logic combines;
  assign combines = override_q || (build_q.op0.kind != OperandKindNone &&
                                   build_q.op1.kind != OperandKindNone) ||
                    ((build_q.op1.kind == OperandKindArrival ||
                      build_q.op1.kind == OperandKindRemoteMemory) &&
                     build_q.arrival.mode != PeerModeRank);

  move_t built;
  always_comb begin
    built = build_q;
    built.func = combines ? call_func_q : FuncNone;
  end

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
      move_slot_o <= slot_q;
    end
  end

  always_ff @(posedge clk_i) begin
    list_valid_o <= rst_ni && finish && is_list && !list_full && !fault_q;
    list_slot_o <= slot_q;
    list_index_o <= list_end[ListAddressWidth-1:0];
    list_word_o <= first_q[23:0];
  end

  always_ff @(posedge clk_i) begin
    if (take_work && work_q.kind == WorkStart) begin
      moves_q[work_q.slot] <= '0;
      list_end_q[work_q.slot] <= '0;
    end else begin
      if (emits) moves_q[slot_q] <= moves + 1'b1;
      if (finish && is_list && !list_full) list_end_q[slot_q] <= list_end + 1'b1;
    end
  end

  // --------------------------------------------------------------------------- faults and failures

  // A field that has more bits than a move holds.
  logic out_of_range;
  always_comb begin
    out_of_range = 1'b0;
    case (group_q)
      GroupPlace: begin
        out_of_range = second_q[23:16] != '0 || (!operation_q[6] && second_q[31:24] != '0);
      end
      GroupPeer: out_of_range = first_q[31:24] != '0 || second_q[31:24] != '0;
      GroupBuild: begin
        if (operation_q == BuildCount || operation_q == BuildCountIndirect) begin
          out_of_range = second_q[31:8] != '0;
        end
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fault_q <= 1'b0;
      fault_code_q <= ErrorCodeOk;
    end else if (finish && group_q == GroupControl && operation_q == ControlClear) begin
      fault_q <= 1'b0;
    end else if (!fault_q && finish && is_emit && ticket_wrong) begin
      fault_q <= 1'b1;
      fault_code_q <= ErrorCodeInternal;
    end else if (!fault_q && finish && (out_of_range || (is_list && list_full))) begin
      fault_q <= 1'b1;
      fault_code_q <= ErrorCodeCapacity;
    end
    fail_valid_o <= rst_ni && finish && group_q == GroupControl && operation_q == ControlFail;
    fail_slot_o <= slot_q;
    fail_code_o <= error_code_e'(first_q[15:0]);
  end

  // ------------------------------------------------------------------------- signature and context

  logic [31:0] crc_q;
  logic [31:0] signature;
  assign signature = ~crc_q == 32'd0 ? 32'd1 : ~crc_q;

  always_ff @(posedge clk_i) begin
    if (finish && group_q == GroupCheck) begin
      case (operation_q)
        CheckBegin: crc_q <= '1;
        CheckLong: crc_q <= crc_bits(crc_q, {second_q, first_q}, 64);
        CheckWord: crc_q <= crc_bits(crc_q, {32'd0, first_q}, 32);
        CheckHalf: crc_q <= crc_bits(crc_q, {48'd0, first_q[15:0]}, 16);
        default: ;
      endcase
    end
  end

  logic [31:0] signed_q;
  always_ff @(posedge clk_i) begin
    if (finish && group_q == GroupControl && operation_q == ControlSign) signed_q <= first_q;
  end

  always_ff @(posedge clk_i) begin
    context_valid_o <= rst_ni && finish && group_q == GroupControl && operation_q == ControlContext;
    context_slot_o <= slot_q;
    context_o.signature <= signed_q;
    context_o.sequence_or_tag <= second_q;
    context_o.communicator <= key_q.communicator[7:0];
    context_o.algorithm <= first_q[15:8];
    context_o.space <= space_e'(first_q[1:0]);
    context_o.dtype <= datatype_e'(first_q[21:16]);
  end

  // -------------------------------------------------------------------------------------- division

  // All steps of a call divide the same numbers, so the last division of each slot is kept.
  typedef struct packed {
    logic [63:0] total;
    logic [31:0] parts;
  } division_t;
  typedef struct packed {
    logic [63:0] quotient;
    logic [31:0] rest;
  } quotient_t;

  division_t division_kept_q[Slots];
  quotient_t quotient_kept_q[Slots];
  logic [Slots-1:0] division_known_q;
  division_t division_kept;
  quotient_t quotient_kept;
  assign division_kept = division_kept_q[slot_q];
  assign quotient_kept = quotient_kept_q[slot_q];

  logic is_divide;
  logic [63:0] total_q;
  logic total_kept_q;
  logic division_done;
  assign is_divide = valid_q && group_q == GroupCheck && operation_q == DivideQuotient;
  assign division_done = total_kept_q && division_kept.parts == first_q;

  // One bit of the quotient a cycle; totals of 32 bits skip the upper half.
  logic dividing_q;
  logic [5:0] bit_q;
  quotient_t divide_q;
  logic [32:0] minuend;
  logic [32:0] difference;
  assign minuend = {divide_q.rest, divide_q.quotient[63]};
  assign difference = minuend - {1'b0, first_q};

  always_ff @(posedge clk_i) begin
    if (finish && group_q == GroupCheck && operation_q == DivideTotal) begin
      total_q <= {second_q, first_q};
      total_kept_q <= division_known_q[slot_q] && division_kept.total == {second_q, first_q};
    end
    if (is_divide && !division_done) begin
      if (!dividing_q) begin
        dividing_q <= 1'b1;
        bit_q <= total_q[63:32] == '0 ? 6'd31 : 6'd63;
        divide_q.quotient <= total_q[63:32] == '0 ? {total_q[31:0], 32'd0} : total_q;
        divide_q.rest <= '0;
      end else begin
        divide_q.quotient <= {divide_q.quotient[62:0], !difference[32]};
        divide_q.rest <= difference[32] ? minuend[31:0] : difference[31:0];
        bit_q <= bit_q - 1'b1;
        if (bit_q == '0) begin
          dividing_q <= 1'b0;
          division_kept_q[slot_q] <= '{total: total_q, parts: first_q};
          quotient_kept_q[slot_q] <= '{
              quotient: {divide_q.quotient[62:0], !difference[32]},
              rest: difference[32] ? minuend[31:0] : difference[31:0]
          };
          division_known_q[slot_q] <= 1'b1;
          total_kept_q <= 1'b1;
        end
      end
    end
    if (!rst_ni) begin
      dividing_q <= 1'b0;
      division_known_q <= '0;
      total_kept_q <= 1'b0;
    end
  end

  // ------------------------------------------------------------------------------------ the answer

  always_comb begin
    can_finish = 1'b1;
    if (is_next) can_finish = (work_valid_q || fault_q || step_again) && !emit_blocked && !looking;
    if (is_emit || is_end) can_finish = !emit_blocked;
    if (group_q == GroupCovers) can_finish = compared_q;
    if (is_divide) can_finish = division_done;
  end

  logic [ 5:0] first_width;
  logic [31:0] first_reversed;
  always_comb begin
    first_width = '0;
    for (int unsigned i = 0; i < 32; i++) begin
      if (first_q[i]) first_width = 6'(i + 1);
      first_reversed[i] = first_q[31-i];
    end
  end

  logic [31:0] next_item;
  always_comb begin
    next_item = '0;
    if (fault_q) begin
      next_item[NextFaultCodeBit+:16] = fault_code_q;
      next_item[NextFaultBit] = 1'b1;
    end else begin
      next_item[1:0] = work_valid_q ? work_q.kind : WorkMore;
      next_item[NextSlotBit+:SlotWidth] = work_valid_q ? work_q.slot : slot_q;
      if (work_valid_q && work_q.kind == WorkStart) begin
        next_item[NextPlanBit+:$clog2(Plans)] = plan;
        next_item[NextHitBit] = hit_q && key_there_q == key_q;
      end
    end
  end

  always_comb begin
    answer_data_o = '0;
    case (group_q)
      GroupControl: if (operation_q == ControlNext) answer_data_o = next_item;
      GroupBuild: begin
        case (operation_q)
          BuildBegin: answer_data_o = ticket_q + 1'b1;
          BuildList: answer_data_o = 32'(list_end);
          BuildMoves: answer_data_o = moves;
          default: ;
        endcase
      end
      GroupDescriptor: begin
        answer_data_o = operation_q[0] ? descriptor_data_i[63:32] : descriptor_data_i[31:0];
        if (operation_q == 7'd1) answer_data_o[31:DescriptorFlags] = '0;
      end
      GroupCommunicator: answer_data_o = known_q ? communicator_data_i : '0;
      GroupCheck: begin
        case (operation_q)
          DivideQuotient: answer_data_o = quotient_kept.quotient[31:0];
          DivideHigh: answer_data_o = quotient_kept.quotient[63:32];
          DivideRest: answer_data_o = quotient_kept.rest;
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
  unisono_handshake_check #(
    .Width($bits(work_i))
  ) u_work_held (
    .clk_i,
    .rst_ni,
    .valid_i(work_valid_i),
    .ready_i(work_ready_o),
    .data_i (work_i)
  );
  always_ff @(posedge clk_i) begin
    if (rst_ni && work_valid_i) begin
      work_known : assert (work_i.kind inside {WorkStart, WorkMore, WorkControl});
    end
    if (rst_ni && move_valid_o && !move_end_o) begin
      emitted_well_formed : assert (move_well_formed(move_o));
    end
  end
`endif

endmodule
