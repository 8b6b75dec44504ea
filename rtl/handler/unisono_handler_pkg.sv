// What the parts of the handlers' machine agree on: who does an instruction's work, how wide elements are, what the
// loader is told.
package unisono_handler_pkg;

  import unisono_handler_isa_pkg::*;

  // A design uses only a part of this package, and functions only look at some bits of what they get.
  // verilator lint_off UNUSEDPARAM
  // verilator lint_off UNUSEDSIGNAL

  localparam int unsigned CellBits = 64;  // of a scalar register, and of a lane
  localparam int unsigned Infos = 6;
  localparam int unsigned Functions = 3;

  // In a cycle: an instruction, and so many behind it that go along. Ports of the registers.
  localparam int unsigned Along = 2;
  localparam int unsigned AlongReads = 3;
  localparam int unsigned ScalarReads = 4 + Along * AlongReads;
  localparam int unsigned ScalarWrites = 2 + Along;
  localparam int unsigned VectorWrites = 3;

  typedef logic [CellBits-1:0] cell_t;
  typedef logic [Infos-1:0][31:0] infos_t;
  typedef logic [7:0] element_mask_t;  // bit e: element e

  // What those that go along know of an instruction before them in the cycle.
  typedef struct packed {
    logic       writes;  // a scalar
    logic [5:0] to;
    logic       compares;  // whose value is `true`
    logic       true_;
  } before_t;

  // Who does an instruction's work.
  typedef enum logic [3:0] {
    WorkFlow = 4'd0,  // where the function goes on
    WorkAlu = 4'd1,
    WorkSum = 4'd2,  // of floating point
    WorkMultiply = 4'd3,
    WorkConvert = 4'd4,
    WorkDivide = 4'd5,
    WorkLoad = 4'd6,
    WorkStore = 4'd7,
    WorkTake = 4'd8,
    WorkOutput = 4'd9,
    WorkReduce = 4'd10,  // lanes into a scalar
    WorkTable = 4'd11  // spvacc
  } work_e;

  // What is written by the loader.
  typedef enum logic [2:0] {
    LoadBegin = 3'd0,  // what is there is forgotten
    LoadWord = 3'd1,  // address: which word
    LoadMemory = 3'd2,  // address: of 8 bytes, a multiple of 8
    LoadEntry = 3'd3,  // address: which function; data: its first word
    LoadBytes = 3'd4,  // of memory
    LoadBudget = 3'd5,  // instructions of a function
    LoadCommit = 3'd6,  // data: elements that the handler needs
    LoadRead = 3'd7  // asks for 8 bytes of memory
  } load_e;

  // Why a handler was refused.
  typedef enum logic [1:0] {
    RefusedNot = 2'd0,
    RefusedWords = 2'd1,  // more words than there is room for
    RefusedMemory = 2'd2,  // more memory
    RefusedElements = 2'd3  // elements that are not built in
  } refused_e;

  // How a function ended.
  typedef struct packed {
    function_e   function_;
    stop_e       stop;
    logic [31:0] verdict;
    logic [13:0] word;  // where it ended or was stopped
    logic [31:0] executed;
    logic [16:0] output_bytes;
  } outcome_t;

  function automatic logic is_floating(element_e element);
    return element[2];
  endfunction

  // log2 of an element's bytes.
  function automatic logic [1:0] size_of(element_e element);
    case (element)
      ElementI8: return 2'd0;
      ElementI16, ElementFp16, ElementBf16: return 2'd1;
      ElementI32, ElementFp32: return 2'd2;
      default: return 2'd3;
    endcase
  endfunction

  // The bits of 2^size bytes.
  function automatic cell_t bits_of(logic [1:0] size);
    case (size)
      2'd0: return 64'h0000_0000_0000_00ff;
      2'd1: return 64'h0000_0000_0000_ffff;
      2'd2: return 64'h0000_0000_ffff_ffff;
      default: return '1;
    endcase
  endfunction

  // 2^size bytes with their sign in all bits.
  function automatic cell_t signed_of(cell_t value, logic [1:0] size);
    case (size)
      2'd0: return {{56{value[7]}}, value[7:0]};
      2'd1: return {{48{value[15]}}, value[15:0]};
      2'd2: return {{32{value[31]}}, value[31:0]};
      default: return value;
    endcase
  endfunction

  function automatic work_e work_of(op_e op, element_e element);
    case (op)
      OpEnd, OpJump, OpBranch, OpEnter, OpAgain: return WorkFlow;
      OpAdd, OpSub: return is_floating(element) ? WorkSum : WorkAlu;
      OpMul: return WorkMultiply;
      OpDiv, OpDivUnsigned, OpDivSigned, OpRemUnsigned, OpRemSigned: return WorkDivide;
      OpFromUnsigned, OpFromSigned, OpToUnsigned, OpToSigned, OpConvert: return WorkConvert;
      OpLoad: return WorkLoad;
      OpStore: return WorkStore;
      OpTake, OpTakeLanes: return WorkTake;
      OpPut, OpStreamout: return WorkOutput;
      OpSum: return WorkReduce;
      OpSpvaccVx, OpSpvaccVv, OpSpvaccXv: return WorkTable;
      default: return WorkAlu;
    endcase
  endfunction

  // Elements next to one another, as in memory.
  function automatic logic [Lanes*CellBits-1:0] packed_of(cell_t [Lanes-1:0] lanes, logic [1:0] size);
    packed_of = '0;
    for (int unsigned l = 0; l < Lanes; l++) begin
      case (size)
        2'd0: packed_of[8*l+:8] = lanes[l][7:0];
        2'd1: packed_of[16*l+:16] = lanes[l][15:0];
        2'd2: packed_of[32*l+:32] = lanes[l][31:0];
        default: packed_of[64*l+:64] = lanes[l];
      endcase
    end
  endfunction

  // Whether an instruction reads a scalar, or a vector. Of a vector's old lanes take_lanes reads none.
  function automatic logic reads(instruction_t word, logic vector, logic [5:0] register);
    logic [31:0] form;
    logic lanes;
    form = op_form(word.op);
    lanes = word.vector_;
    reads = form[2] && (lanes && form[6]) == vector && word.ra[5:0] == register;
    if (form[1] && word.op != OpTakeLanes && (lanes && form[5]) == vector && word.rd[5:0] == register) reads = 1'b1;
    if (form[3] && !word.immediate && (lanes && form[7]) == vector && word.imm[5:0] == register) reads = 1'b1;
    if (form[4] && (lanes && form[8]) == vector && word.imm[13:8] == register) reads = 1'b1;
  endfunction

  // Whether an instruction writes a scalar.
  function automatic logic op_writes(instruction_t word);
    logic [31:0] form;
    form = op_form(word.op);
    return form[0] && !(word.vector_ && form[5]);
  endfunction

  // Whether an instruction's result is 0 or 1.
  function automatic logic compares(instruction_t word);
    return (word.op == OpCompare || word.op == OpCompareSigned) && !word.vector_;
  endfunction

  // Cycles from the operands to the result; of divisions it depends on the element, and on nothing else.
  function automatic int unsigned latency_of(work_e work);
    case (work)
      WorkSum: return 8;
      WorkMultiply: return 11;
      WorkConvert: return 6;
      default: return 0;
    endcase
  endfunction

  // A number on its way to a format: (-1)^sign * significand / 2^63 * 2^exponent. The significand's top bit is 1, or
  // the number is 0; what was below its last bit is not 0 if `lost`.
  typedef struct packed {
    logic               sign;
    logic signed [13:0] exponent;
    logic [63:0]        significand;
    logic               lost;
  } wide_t;

  function automatic cell_t infinity_of(element_e element);
    case (element)
      ElementFp16: return 64'h7c00;
      ElementBf16: return 64'h7f80;
      ElementFp32: return 64'h7f80_0000;
      default: return 64'h7ff0_0000_0000_0000;
    endcase
  endfunction

  // A number taken apart.
  typedef struct packed {
    logic        sign;
    logic [10:0] exponent;  // as it stands
    logic [51:0] fraction;  // to the left
    logic        top;  // the exponent is that of infinity and NaN
  } apart_t;

  function automatic apart_t apart_of(cell_t value, element_e element);
    case (element)
      ElementFp16: return '{value[15], 11'(value[14:10]), {value[9:0], 42'd0}, value[14:10] == '1};
      ElementBf16: return '{value[15], 11'(value[14:7]), {value[6:0], 45'd0}, value[14:7] == '1};
      ElementFp32: return '{value[31], 11'(value[30:23]), {value[22:0], 29'd0}, value[30:23] == '1};
      default: return '{value[63], value[62:52], value[51:0], value[62:52] == '1};
    endcase
  endfunction

  // Infinity (fraction 0), or the quiet NaN that has the fraction.
  function automatic cell_t special_of(logic sign, logic [51:0] fraction, element_e element);
    logic [51:0] quiet;
    quiet = fraction == '0 ? '0 : fraction | 52'h8_0000_0000_0000;
    case (element)
      ElementFp16: return {48'd0, sign, 5'h1f, quiet[51:42]};
      ElementBf16: return {48'd0, sign, 8'hff, quiet[51:45]};
      ElementFp32: return {32'd0, sign, 8'hff, quiet[51:29]};
      default: return {sign, 11'h7ff, quiet};
    endcase
  endfunction

  function automatic logic signed [13:0] bias_of(element_e element);
    case (element)
      ElementFp16: return 14'sd15;
      ElementBf16, ElementFp32: return 14'sd127;
      default: return 14'sd1023;
    endcase
  endfunction

  // A number of fp16 or bf16 as fp32, which has all of them.
  function automatic cell_t to_fp32(cell_t value, element_e element);
    apart_t a;
    logic [3:0] zeros;
    logic [9:0] fraction;
    if (element == ElementBf16) return {32'd0, value[15:0], 16'd0};
    a = apart_of(value, ElementFp16);
    if (a.top) return special_of(a.sign, a.fraction, ElementFp32);
    fraction = value[9:0];
    if (a.exponent != '0) return {32'd0, a.sign, 8'(a.exponent) + 8'd112, fraction, 13'd0};
    if (fraction == '0) return {32'd0, a.sign, 31'd0};
    zeros = 4'd0;
    for (int unsigned i = 0; i < 10; i++) if (value[i]) zeros = 4'(9 - i);
    return {32'd0, a.sign, 8'd112 - 8'(zeros), 10'(fraction << (zeros + 4'd1)), 13'd0};
  endfunction

  // And back, rounded to nearest, ties to even.
  function automatic cell_t from_fp32(cell_t value, element_e element);
    apart_t a;
    logic [7:0] exponent;
    logic [4:0] down;
    logic [23:0] significand, whole;
    logic half, lost;
    a = apart_of(value, ElementFp32);
    if (a.top) return special_of(a.sign, a.fraction, element);
    if (element == ElementBf16) begin
      return {48'd0, value[31:16] + 16'(value[15] && (value[16] || value[14:0] != '0))};
    end
    // Below 2^-14 a number of fp16 is subnormal; of what is below 2^-25 nothing is left.
    exponent = value[30:23];
    significand = {exponent != '0, value[22:0]};
    down = exponent > 8'd112 ? 5'd0 : exponent < 8'd101 ? 5'd12 : 5'(8'd113 - exponent);
    whole = significand >> down;
    lost = (significand & ~(24'hff_ffff << down)) != '0;
    half = whole[12];
    lost = lost || whole[11:0] != '0;
    if (exponent > 8'd142) return {48'd0, a.sign, 15'h7c00};
    return {48'd0, a.sign, {exponent > 8'd112 ? 5'(exponent - 8'd113) : 5'd0, 10'd0} + 15'(whole[23:13])
                           + 15'(half && (lost || whole[13]))};
  endfunction

  // verilator lint_on UNUSEDSIGNAL
  // verilator lint_on UNUSEDPARAM

endpackage
