// Generated from spec/handlers.yaml by `python -m spec.generator`. Do not edit.
//
// Bit 0 of a record is the lowest bit of its first field, hence the last member of the struct.
// A member whose name would be a keyword of SystemVerilog, or a word of C++, ends in an underscore.

package unisono_handler_isa_pkg;

  // A design uses only a part of the specification.
  // verilator lint_off UNUSEDPARAM

  // When a handler runs.
  typedef enum logic [1:0] {
    // once at a message's first packet, before its payload
    FunctionHeader = 2'd0,
    // at each packet
    FunctionPayload = 2'd1,
    // once after a message's last packet
    FunctionCompletion = 2'd2
  } function_e;

  // Whether `value` is one of the enumerators of function_e.
  function automatic logic function_known(logic [1:0] value);
    case (value)
      FunctionHeader, FunctionPayload, FunctionCompletion: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // What an instruction's operands are. Scalar registers and lanes have 64 bits; those that an
  // element does not need are 0.
  typedef enum logic [2:0] {
    // integer of 8 bits
    ElementI8 = 3'd0,
    // integer of 16 bits
    ElementI16 = 3'd1,
    // integer of 32 bits
    ElementI32 = 3'd2,
    // integer of 64 bits
    ElementI64 = 3'd3,
    // IEEE 754 binary32
    ElementFp32 = 3'd4,
    // IEEE 754 binary64
    ElementFp64 = 3'd5,
    // IEEE 754 binary16, in memory and conversions; registers hold it as fp32
    ElementFp16 = 3'd6,
    // bfloat16, in memory and conversions; registers hold it as fp32
    ElementBf16 = 3'd7
  } element_e;

  // Whether `value` is one of the enumerators of element_e.
  function automatic logic element_known(logic [2:0] value);
    case (value)
      ElementI8, ElementI16, ElementI32, ElementI64, ElementFp32, ElementFp64, ElementFp16,
      ElementBf16: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Attribute `bytes` of a element; 0 for a value that is none.
  function automatic int unsigned element_bytes(element_e value);
    case (value)
      ElementI8: return 32'd1;
      ElementI16: return 32'd2;
      ElementI32: return 32'd4;
      ElementI64: return 32'd8;
      ElementFp32: return 32'd4;
      ElementFp64: return 32'd8;
      ElementFp16: return 32'd2;
      ElementBf16: return 32'd2;
      default: return 32'd0;
    endcase
  endfunction

  // What a handler can ask about its packet.
  typedef enum logic [3:0] {
    // bytes of the packet's payload; 0 in header and completion functions
    InfoLength = 4'd0,
    // number of the packet in its message, from 0
    InfoPacket = 4'd1,
    // packets of the message
    InfoPackets = 4'd2,
    // rank that sends the message
    InfoSource = 4'd3,
    // ranks of the communicator
    InfoRanks = 4'd4,
    // tag of the message
    InfoTag = 4'd5
  } info_e;

  // Whether `value` is one of the enumerators of info_e.
  function automatic logic info_known(logic [3:0] value);
    case (value)
      InfoLength, InfoPacket, InfoPackets, InfoSource, InfoRanks, InfoTag: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Attribute `most` of a info; 0 for a value that is none.
  function automatic int unsigned info_most(info_e value);
    case (value)
      InfoLength: return 32'd8192;
      InfoPacket: return 32'd16777215;
      InfoPackets: return 32'd16777216;
      InfoSource: return 32'd16777215;
      InfoRanks: return 32'd16777216;
      InfoTag: return 32'd4294967295;
      default: return 32'd0;
    endcase
  endfunction

  // Why a handler ended.
  typedef enum logic [3:0] {
    // it came to its end
    StopNone = 4'd0,
    // it executed as many instructions as it may
    StopBudget = 4'd1,
    // a loop went round more often than its bound
    StopLoopBound = 4'd2,
    // it reached beyond its memory
    StopMemory = 4'd3,
    // it read beyond the packet's payload
    StopPayload = 4'd4,
    // it wrote more than there is room for
    StopOutput = 4'd5,
    // it divided an integer by 0
    StopDivide = 4'd6
  } stop_e;

  // Whether `value` is one of the enumerators of stop_e.
  function automatic logic stop_known(logic [3:0] value);
    case (value)
      StopNone, StopBudget, StopLoopBound, StopMemory, StopPayload, StopOutput, StopDivide: return
      1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Instructions of a handler.
  typedef enum logic [6:0] {
    // no instruction
    OpNone = 7'd0,
    // the function ends; its verdict is the second operand's low 32 bits
    OpEnd = 7'd1,
    // goes on at imm, which is ahead
    OpJump = 7'd2,
    // goes on at imm, which is ahead, if ra is not 0 (aux 1: if it is 0)
    OpBranch = 7'd3,
    // before a loop: it may go round imm times
    OpEnter = 7'd4,
    // goes round: on at imm, which is behind, if ra is not 0 (aux 1: if it is 0, aux 2: always)
    OpAgain = 7'd5,
    // rd = imm, sign-extended
    OpSet = 7'd6,
    // the high 32 bits of rd = imm
    OpSetHigh = 7'd7,
    // rd = ra
    OpMove = 7'd8,
    // all lanes of rd = ra
    OpSplat = 7'd9,
    // rd = lane of ra; the lane is the second operand's low 4 bits
    OpExtract = 7'd10,
    // a lane of rd = ra
    OpInsert = 7'd11,
    // rd += lane 0 of ra, then lane 1, and so on
    OpSum = 7'd12,
    // rd = what imm (an info) names
    OpInfo = 7'd13,
    // a + b
    OpAdd = 7'd16,
    // a - b
    OpSub = 7'd17,
    // a * b
    OpMul = 7'd18,
    // a / b, floating point
    OpDiv = 7'd19,
    // a / b
    OpDivUnsigned = 7'd20,
    // a / b toward 0; the least number / -1 wraps
    OpDivSigned = 7'd21,
    // what remains of a / b
    OpRemUnsigned = 7'd22,
    // what remains of a / b, with the sign of a
    OpRemSigned = 7'd23,
    // bits that both have
    OpAnd = 7'd24,
    // bits that one has
    OpOr = 7'd25,
    // bits in which they differ
    OpXor = 7'd26,
    // a << b, modulo the element's bits
    OpShiftLeft = 7'd27,
    // a >> b with zeros from above
    OpShiftRight = 7'd28,
    // a >> b with the sign from above
    OpShiftSigned = 7'd29,
    // the lesser, of unsigned numbers; IEEE 754-2019 minimum
    OpMin = 7'd30,
    // the greater, of unsigned numbers; IEEE 754-2019 maximum
    OpMax = 7'd31,
    // the lesser, of signed numbers
    OpMinSigned = 7'd32,
    // the greater, of signed numbers
    OpMaxSigned = 7'd33,
    // 1 if a is what aux says, a sum: 1 less, 2 equal, 4 greater, 8 unordered; otherwise 0
    OpCompare = 7'd34,
    // the same of signed numbers
    OpCompareSigned = 7'd35,
    // rb if ra is not 0, otherwise rc; lane by lane
    OpSelect = 7'd36,
    // bits of a that are 1
    OpPopcount = 7'd37,
    // zeros above a's highest 1; the element's bits if there is none
    OpLeadingZeros = 7'd38,
    // zeros below a's lowest 1; the element's bits if there is none
    OpTrailingZeros = 7'd39,
    // a's bytes in the other order
    OpSwapBytes = 7'd40,
    // the element's bits of a
    OpTruncate = 7'd41,
    // a, an integer of element aux, with its sign
    OpSignExtend = 7'd42,
    // the nearest number to a, an unsigned integer of element aux
    OpFromUnsigned = 7'd43,
    // the nearest number to a, a signed integer of element aux
    OpFromSigned = 7'd44,
    // a, of element aux, toward 0; the nearest integer there is; 0 of NaN
    OpToUnsigned = 7'd45,
    // the same, to a signed integer
    OpToSigned = 7'd46,
    // a, of element aux, rounded to the nearest
    OpConvert = 7'd47,
    // rd = the element in memory at ra + imm; vector: 16 of them
    OpLoad = 7'd48,
    // the element in memory at ra + imm = rd; vector: 16 of them
    OpStore = 7'd49,
    // rd = the element in the payload at ra + imm
    OpTake = 7'd50,
    // lanes of rd = 16 elements in the payload at ra + imm; lanes beyond its end stay as they are
    OpTakeLanes = 7'd51,
    // writes an element to the output stream
    OpPut = 7'd52,
    // writes as many first lanes of ra as the second operand says, 16 at most
    OpStreamout = 7'd53,
    // table[i] += rb for lanes i of rd in their order, if i < rc; the table is at ra
    OpSpvaccVx = 7'd54,
    // the same with the lane of rb
    OpSpvaccVv = 7'd55,
    // rd += table[i] for lanes i of ra in their order, if i < rc; the table is at rb
    OpSpvaccXv = 7'd56
  } op_e;

  // Whether `value` is one of the enumerators of op_e.
  function automatic logic op_known(logic [6:0] value);
    case (value)
      OpNone, OpEnd, OpJump, OpBranch, OpEnter, OpAgain, OpSet, OpSetHigh, OpMove, OpSplat,
      OpExtract, OpInsert, OpSum, OpInfo, OpAdd, OpSub, OpMul, OpDiv, OpDivUnsigned, OpDivSigned,
      OpRemUnsigned, OpRemSigned, OpAnd, OpOr, OpXor, OpShiftLeft, OpShiftRight, OpShiftSigned,
      OpMin, OpMax, OpMinSigned, OpMaxSigned, OpCompare, OpCompareSigned, OpSelect, OpPopcount,
      OpLeadingZeros, OpTrailingZeros, OpSwapBytes, OpTruncate, OpSignExtend, OpFromUnsigned,
      OpFromSigned, OpToUnsigned, OpToSigned, OpConvert, OpLoad, OpStore, OpTake, OpTakeLanes,
      OpPut, OpStreamout, OpSpvaccVx, OpSpvaccVv, OpSpvaccXv: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Attribute `auxes` of a op; 0 for a value that is none.
  function automatic int unsigned op_auxes(op_e value);
    case (value)
      OpNone: return 32'd0;
      OpEnd: return 32'd1;
      OpJump: return 32'd1;
      OpBranch: return 32'd2;
      OpEnter: return 32'd1;
      OpAgain: return 32'd3;
      OpSet: return 32'd1;
      OpSetHigh: return 32'd1;
      OpMove: return 32'd1;
      OpSplat: return 32'd1;
      OpExtract: return 32'd1;
      OpInsert: return 32'd1;
      OpSum: return 32'd1;
      OpInfo: return 32'd1;
      OpAdd: return 32'd1;
      OpSub: return 32'd1;
      OpMul: return 32'd1;
      OpDiv: return 32'd1;
      OpDivUnsigned: return 32'd1;
      OpDivSigned: return 32'd1;
      OpRemUnsigned: return 32'd1;
      OpRemSigned: return 32'd1;
      OpAnd: return 32'd1;
      OpOr: return 32'd1;
      OpXor: return 32'd1;
      OpShiftLeft: return 32'd1;
      OpShiftRight: return 32'd1;
      OpShiftSigned: return 32'd1;
      OpMin: return 32'd1;
      OpMax: return 32'd1;
      OpMinSigned: return 32'd1;
      OpMaxSigned: return 32'd1;
      OpCompare: return 32'd16;
      OpCompareSigned: return 32'd8;
      OpSelect: return 32'd1;
      OpPopcount: return 32'd1;
      OpLeadingZeros: return 32'd1;
      OpTrailingZeros: return 32'd1;
      OpSwapBytes: return 32'd1;
      OpTruncate: return 32'd1;
      OpSignExtend: return 32'd4;
      OpFromUnsigned: return 32'd4;
      OpFromSigned: return 32'd4;
      OpToUnsigned: return 32'd8;
      OpToSigned: return 32'd8;
      OpConvert: return 32'd8;
      OpLoad: return 32'd1;
      OpStore: return 32'd1;
      OpTake: return 32'd1;
      OpTakeLanes: return 32'd1;
      OpPut: return 32'd1;
      OpStreamout: return 32'd1;
      OpSpvaccVx: return 32'd1;
      OpSpvaccVv: return 32'd1;
      OpSpvaccXv: return 32'd1;
      default: return 32'd0;
    endcase
  endfunction

  // Attribute `form` of a op; 0 for a value that is none.
  function automatic int unsigned op_form(op_e value);
    case (value)
      OpNone: return 32'd0;
      OpEnd: return 32'd520;
      OpJump: return 32'd4608;
      OpBranch: return 32'd4612;
      OpEnter: return 32'd8704;
      OpAgain: return 32'd12804;
      OpSet: return 32'd513;
      OpSetHigh: return 32'd515;
      OpMove: return 32'd1637;
      OpSplat: return 32'd1061;
      OpExtract: return 32'd1101;
      OpInsert: return 32'd1071;
      OpSum: return 32'd1095;
      OpInfo: return 32'd513;
      OpAdd: return 32'd1773;
      OpSub: return 32'd1773;
      OpMul: return 32'd1773;
      OpDiv: return 32'd1773;
      OpDivUnsigned: return 32'd1773;
      OpDivSigned: return 32'd1773;
      OpRemUnsigned: return 32'd1773;
      OpRemSigned: return 32'd1773;
      OpAnd: return 32'd1773;
      OpOr: return 32'd1773;
      OpXor: return 32'd1773;
      OpShiftLeft: return 32'd1773;
      OpShiftRight: return 32'd1773;
      OpShiftSigned: return 32'd1773;
      OpMin: return 32'd1773;
      OpMax: return 32'd1773;
      OpMinSigned: return 32'd1773;
      OpMaxSigned: return 32'd1773;
      OpCompare: return 32'd1773;
      OpCompareSigned: return 32'd1773;
      OpSelect: return 32'd2045;
      OpPopcount: return 32'd1637;
      OpLeadingZeros: return 32'd1637;
      OpTrailingZeros: return 32'd1637;
      OpSwapBytes: return 32'd1637;
      OpTruncate: return 32'd1637;
      OpSignExtend: return 32'd1637;
      OpFromUnsigned: return 32'd1637;
      OpFromSigned: return 32'd1637;
      OpToUnsigned: return 32'd1637;
      OpToSigned: return 32'd1637;
      OpConvert: return 32'd1637;
      OpLoad: return 32'd3621;
      OpStore: return 32'd3622;
      OpTake: return 32'd2565;
      OpTakeLanes: return 32'd3111;
      OpPut: return 32'd516;
      OpStreamout: return 32'd1100;
      OpSpvaccVx: return 32'd1086;
      OpSpvaccVv: return 32'd1214;
      OpSpvaccXv: return 32'd1119;
      default: return 32'd0;
    endcase
  endfunction

  // Attribute `types` of a op; 0 for a value that is none.
  function automatic int unsigned op_types(op_e value);
    case (value)
      OpNone: return 32'd0;
      OpEnd: return 32'd8;
      OpJump: return 32'd8;
      OpBranch: return 32'd8;
      OpEnter: return 32'd8;
      OpAgain: return 32'd8;
      OpSet: return 32'd8;
      OpSetHigh: return 32'd8;
      OpMove: return 32'd8;
      OpSplat: return 32'd8;
      OpExtract: return 32'd8;
      OpInsert: return 32'd8;
      OpSum: return 32'd63;
      OpInfo: return 32'd8;
      OpAdd: return 32'd63;
      OpSub: return 32'd63;
      OpMul: return 32'd63;
      OpDiv: return 32'd48;
      OpDivUnsigned: return 32'd15;
      OpDivSigned: return 32'd15;
      OpRemUnsigned: return 32'd15;
      OpRemSigned: return 32'd15;
      OpAnd: return 32'd15;
      OpOr: return 32'd15;
      OpXor: return 32'd15;
      OpShiftLeft: return 32'd15;
      OpShiftRight: return 32'd15;
      OpShiftSigned: return 32'd15;
      OpMin: return 32'd63;
      OpMax: return 32'd63;
      OpMinSigned: return 32'd15;
      OpMaxSigned: return 32'd15;
      OpCompare: return 32'd63;
      OpCompareSigned: return 32'd15;
      OpSelect: return 32'd8;
      OpPopcount: return 32'd15;
      OpLeadingZeros: return 32'd15;
      OpTrailingZeros: return 32'd15;
      OpSwapBytes: return 32'd14;
      OpTruncate: return 32'd15;
      OpSignExtend: return 32'd15;
      OpFromUnsigned: return 32'd48;
      OpFromSigned: return 32'd48;
      OpToUnsigned: return 32'd15;
      OpToSigned: return 32'd15;
      OpConvert: return 32'd240;
      OpLoad: return 32'd15;
      OpStore: return 32'd15;
      OpTake: return 32'd15;
      OpTakeLanes: return 32'd15;
      OpPut: return 32'd15;
      OpStreamout: return 32'd15;
      OpSpvaccVx: return 32'd252;
      OpSpvaccVv: return 32'd252;
      OpSpvaccXv: return 32'd252;
      default: return 32'd0;
    endcase
  endfunction

  // first 4 bytes of a binary: UHDL in memory order
  localparam int unsigned HandlerMagic = 32'd1279543381;
  // version of the binary
  localparam int unsigned HandlerVersion = 32'd1;
  // of 64 bits
  localparam int unsigned ScalarRegisters = 32'd64;
  // of 16 lanes
  localparam int unsigned VectorRegisters = 32'd32;
  // of a vector register, 64 bits each
  localparam int unsigned Lanes = 32'd16;
  // loops of a binary
  localparam int unsigned MostLoops = 32'd64;
  // instructions of a binary
  localparam int unsigned MostWords = 32'd16384;
  // memory of a handler
  localparam int unsigned MostMemoryBytes = 32'd16777216;
  // payload of a packet
  localparam int unsigned MostPayloadBytes = 32'd8192;
  // what a function may write to the output stream, each time it runs
  localparam int unsigned MostOutputBytes = 32'd65536;

  // One instruction.
  typedef struct packed {
    // number, offset or word; without any: rb in bits 7:0, rc in bits 15:8
    logic [31:0] imm;
    // first operand
    logic [7:0] ra;
    // destination
    logic [7:0] rd;
    // which of its variants
    logic [3:0] aux;
    // the second operand is imm, sign-extended
    logic immediate;
    // of what
    element_e element;
    // on 16 lanes
    logic vector_;
    // what it does
    op_e op;
  } instruction_t;

  localparam int unsigned InstructionWidth = 64;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic instruction_well_formed(instruction_t value);
    return op_known(value.op) &&
           element_known(value.element);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // verilator lint_on UNUSEDPARAM

endpackage : unisono_handler_isa_pkg
