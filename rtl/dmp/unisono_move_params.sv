// Puts counts and offsets that a move takes from its call's params in their place, before it is decoded.
//
// A move with an indirect count or offset is held, its words are read one after the other, and it goes on as a direct
// one. Moves without any, and the ends of programs, pass. Words beyond the region, and counts and offsets that have no
// place in a move, fail the call; so do errors of memory. The move then goes on without elements and without a message.
//
// Latency: none for direct moves; 3 cycles, and for each word 4 more and the reader's. Throughput: a direct move per cycle.
// Restrictions: a program does not write its params.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_move_params
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned DataBytes = 64
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic  in_valid_i,
  output logic  in_ready_o,
  input  slot_t in_slot_i,
  input  move_t in_move_i,
  input  logic  in_end_i,
  input  logic [Ranks-1:0] in_receives_i,
  input  logic [Ranks-1:0] in_sends_i,

  output logic  out_valid_o,
  input  logic  out_ready_i,
  output slot_t out_slot_o,
  output move_t out_move_o,
  output logic  out_end_o,
  output logic [Ranks-1:0] out_receives_o,
  output logic [Ranks-1:0] out_sends_o,
  output logic  idle_o,

  // Where the slot's params stand: asked while high, answered one cycle after it was granted.
  output logic     binding_valid_o,
  input  logic     binding_ready_i,
  output slot_t    binding_slot_o,
  input  binding_t binding_i,

  // A word of 8 bytes; it comes at byte 0.
  output logic           read_command_valid_o,
  input  logic           read_command_ready_i,
  output address_t       read_command_address_o,
  input  logic                   read_valid_i,
  output logic                   read_ready_o,
  input  logic [DataBytes*8-1:0] read_data_i,
  input  logic                   read_error_i,

  output logic        fail_valid_o,
  output slot_t       fail_slot_o,
  output error_code_e fail_code_o
);

  typedef struct packed {
    slot_t slot;
    move_t move;
    logic end_;
    logic [Ranks-1:0] receives;
    logic [Ranks-1:0] sends;
  } held_t;

  typedef enum logic [2:0] { Empty, Bind, Bound, Next, Read, Wait, Fail, Offer } state_e;
  state_e state_d, state_q;
  held_t held_d, held_q;
  binding_t binding_d, binding_q;
  error_code_e code_d, code_q;

  // Fields in the order in which they are read.
  localparam int unsigned Fields = 4;
  typedef enum logic [1:0] { FieldCount, FieldOp0, FieldOp1, FieldLocal } field_e;
  field_e field;
  logic [Fields-1:0] wanted;
  move_t move;
  assign move = held_q.move;
  assign wanted = {move.local_.kind == OperandKindMemory && move.local_.indirect,
                   move.op1.kind == OperandKindMemory && move.op1.indirect,
                   move.op0.kind == OperandKindMemory && move.op0.indirect, move.count_indirect};
  logic [47:0] at;
  always_comb begin
    if (wanted[0]) field = FieldCount;
    else if (wanted[1]) field = FieldOp0;
    else if (wanted[2]) field = FieldOp1;
    else field = FieldLocal;
    unique case (field)
      FieldCount: at = 48'(move.count);
      FieldOp0: at = move.op0.offset;
      FieldOp1: at = move.op1.offset;
      default: at = move.local_.offset;
    endcase
  end

  logic indirect, beyond;
  logic [63:0] word;
  assign indirect = !in_end_i && in_move_i.kind == MoveKindMove &&
                    (in_move_i.count_indirect ||
                     (in_move_i.op0.kind == OperandKindMemory && in_move_i.op0.indirect) ||
                     (in_move_i.op1.kind == OperandKindMemory && in_move_i.op1.indirect) ||
                     (in_move_i.local_.kind == OperandKindMemory && in_move_i.local_.indirect));
  assign beyond = {1'b0, at} + 49'd8 > {1'b0, binding_q.bytes};
  assign word = read_data_i[63:0];

  // A direct move passes; one with words to be read is held.
  logic passes;
  assign passes = state_q == Empty && !indirect;
  assign in_ready_o = state_q == Empty && (indirect || out_ready_i);
  assign idle_o = state_q == Empty;
  assign out_valid_o = state_q == Offer || (passes && in_valid_i);
  assign out_slot_o = passes ? in_slot_i : held_q.slot;
  assign out_move_o = passes ? in_move_i : move;
  assign out_end_o = passes ? in_end_i : held_q.end_;
  assign out_receives_o = passes ? in_receives_i : held_q.receives;
  assign out_sends_o = passes ? in_sends_i : held_q.sends;
  assign binding_valid_o = state_q == Bind;
  assign binding_slot_o = held_q.slot;
  assign read_command_valid_o = state_q == Read;
  assign read_command_address_o = binding_q.address + address_t'(at);
  assign read_ready_o = state_q == Wait;
  assign fail_valid_o = state_q == Fail;
  assign fail_slot_o = held_q.slot;
  assign fail_code_o = code_q;

  always_comb begin
    state_d = state_q;
    held_d = held_q;
    binding_d = binding_q;
    code_d = code_q;
    unique case (state_q)
      Empty: if (in_valid_i && indirect) begin
        held_d = '{slot: in_slot_i, move: in_move_i, end_: in_end_i, receives: in_receives_i, sends: in_sends_i};
        state_d = Bind;
      end
      Bind: if (binding_ready_i) state_d = Bound;
      Bound: begin
        binding_d = binding_i;
        state_d = Next;
      end
      Next: begin
        code_d = ErrorCodeMalformedProgram;
        state_d = wanted == '0 ? Offer : beyond ? Fail : Read;
      end
      Read: if (read_command_ready_i) state_d = Wait;
      Wait: if (read_valid_i) begin
        state_d = Next;
        unique case (field)
          FieldCount: begin
            held_d.move.count_indirect = 1'b0;
            held_d.move.count = word[$bits(move.count)-1:0];
          end
          FieldOp0: begin
            held_d.move.op0.indirect = 1'b0;
            held_d.move.op0.offset = word[47:0];
          end
          FieldOp1: begin
            held_d.move.op1.indirect = 1'b0;
            held_d.move.op1.offset = word[47:0];
          end
          default: begin
            held_d.move.local_.indirect = 1'b0;
            held_d.move.local_.offset = word[47:0];
          end
        endcase
        code_d = read_error_i ? ErrorCodeInternal : ErrorCodeInvalidCount;
        if (read_error_i || word[63:48] != '0 ||
            (field == FieldCount && (word >> $bits(move.count)) != '0)) begin
          state_d = Fail;
        end
      end
      Fail: begin
        held_d.move.count = '0;
        held_d.move.count_indirect = 1'b0;
        held_d.move.signal = 1'b0;
        held_d.move.op0.indirect = 1'b0;
        held_d.move.op1.indirect = 1'b0;
        held_d.move.local_.indirect = 1'b0;
        state_d = Offer;
      end
      default: if (out_ready_i) state_d = Empty;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Empty;
      held_q <= '0;
      binding_q <= '0;
      code_q <= ErrorCodeOk;
    end else begin
      state_q <= state_d;
      held_q <= held_d;
      binding_q <= binding_d;
      code_q <= code_d;
    end
  end

endmodule
