// Generated from spec/handlers.yaml by `python -m spec.generator`. Do not edit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace unisono::handler {

/// When a handler runs.
enum class Function : std::uint8_t {
  kHeader = 0,  ///< once at a message's first packet, before its payload
  kPayload = 1,  ///< at each packet
  kCompletion = 2,  ///< once after a message's last packet
};

/// Name of a function as users write it; "?" for a value that is none.
constexpr const char* name_of(Function value) {
  switch (value) {
    case Function::kHeader: return "header";
    case Function::kPayload: return "payload";
    case Function::kCompletion: return "completion";
  }
  return "?";
}

/// Whether `value` is one of Function's enumerators.
constexpr bool is_known(Function value) { return name_of(value)[0] != '?'; }

/// All enumerators of Function, in order of value.
inline constexpr std::array<Function, 3> kAllFunction{Function::kHeader, Function::kPayload, Function::kCompletion};

/// What an instruction's operands are. Scalar registers and lanes have 64 bits; those that an element does not need are 0.
enum class Element : std::uint8_t {
  kI8 = 0,  ///< integer of 8 bits
  kI16 = 1,  ///< integer of 16 bits
  kI32 = 2,  ///< integer of 32 bits
  kI64 = 3,  ///< integer of 64 bits
  kFp32 = 4,  ///< IEEE 754 binary32
  kFp64 = 5,  ///< IEEE 754 binary64
  kFp16 = 6,  ///< IEEE 754 binary16, in memory and conversions; registers hold it as fp32
  kBf16 = 7,  ///< bfloat16, in memory and conversions; registers hold it as fp32
};

/// Name of a element as users write it; "?" for a value that is none.
constexpr const char* name_of(Element value) {
  switch (value) {
    case Element::kI8: return "i8";
    case Element::kI16: return "i16";
    case Element::kI32: return "i32";
    case Element::kI64: return "i64";
    case Element::kFp32: return "fp32";
    case Element::kFp64: return "fp64";
    case Element::kFp16: return "fp16";
    case Element::kBf16: return "bf16";
  }
  return "?";
}

/// Whether `value` is one of Element's enumerators.
constexpr bool is_known(Element value) { return name_of(value)[0] != '?'; }

/// All enumerators of Element, in order of value.
inline constexpr std::array<Element, 8> kAllElement{Element::kI8, Element::kI16, Element::kI32, Element::kI64, Element::kFp32, Element::kFp64, Element::kFp16, Element::kBf16};

/// Attribute `bytes` of a element.
constexpr std::uint32_t bytes_of(Element value) {
  switch (value) {
    case Element::kI8: return 1;
    case Element::kI16: return 2;
    case Element::kI32: return 4;
    case Element::kI64: return 8;
    case Element::kFp32: return 4;
    case Element::kFp64: return 8;
    case Element::kFp16: return 2;
    case Element::kBf16: return 2;
  }
  return 0;
}

/// What a handler can ask about its packet.
enum class Info : std::uint8_t {
  kLength = 0,  ///< bytes of the packet's payload; 0 in header and completion functions
  kPacket = 1,  ///< number of the packet in its message, from 0
  kPackets = 2,  ///< packets of the message
  kSource = 3,  ///< rank that sends the message
  kRanks = 4,  ///< ranks of the communicator
  kTag = 5,  ///< tag of the message
};

/// Name of a info as users write it; "?" for a value that is none.
constexpr const char* name_of(Info value) {
  switch (value) {
    case Info::kLength: return "length";
    case Info::kPacket: return "packet";
    case Info::kPackets: return "packets";
    case Info::kSource: return "source";
    case Info::kRanks: return "ranks";
    case Info::kTag: return "tag";
  }
  return "?";
}

/// Whether `value` is one of Info's enumerators.
constexpr bool is_known(Info value) { return name_of(value)[0] != '?'; }

/// All enumerators of Info, in order of value.
inline constexpr std::array<Info, 6> kAllInfo{Info::kLength, Info::kPacket, Info::kPackets, Info::kSource, Info::kRanks, Info::kTag};

/// Attribute `most` of a info.
constexpr std::uint32_t most_of(Info value) {
  switch (value) {
    case Info::kLength: return 8192;
    case Info::kPacket: return 16777215;
    case Info::kPackets: return 16777216;
    case Info::kSource: return 16777215;
    case Info::kRanks: return 16777216;
    case Info::kTag: return 4294967295;
  }
  return 0;
}

/// Why a handler ended.
enum class Stop : std::uint8_t {
  kNone = 0,  ///< it came to its end
  kBudget = 1,  ///< it executed as many instructions as it may
  kLoopBound = 2,  ///< a loop went round more often than its bound
  kMemory = 3,  ///< it reached beyond its memory
  kPayload = 4,  ///< it read beyond the packet's payload
  kOutput = 5,  ///< it wrote more than there is room for
  kDivide = 6,  ///< it divided an integer by 0
};

/// Name of a stop as users write it; "?" for a value that is none.
constexpr const char* name_of(Stop value) {
  switch (value) {
    case Stop::kNone: return "none";
    case Stop::kBudget: return "budget";
    case Stop::kLoopBound: return "loop_bound";
    case Stop::kMemory: return "memory";
    case Stop::kPayload: return "payload";
    case Stop::kOutput: return "output";
    case Stop::kDivide: return "divide";
  }
  return "?";
}

/// Whether `value` is one of Stop's enumerators.
constexpr bool is_known(Stop value) { return name_of(value)[0] != '?'; }

/// All enumerators of Stop, in order of value.
inline constexpr std::array<Stop, 7> kAllStop{Stop::kNone, Stop::kBudget, Stop::kLoopBound, Stop::kMemory, Stop::kPayload, Stop::kOutput, Stop::kDivide};

/// Instructions of a handler.
enum class Op : std::uint8_t {
  kNone = 0,  ///< no instruction
  kEnd = 1,  ///< the function ends; its verdict is the second operand's low 32 bits
  kJump = 2,  ///< goes on at imm, which is ahead
  kBranch = 3,  ///< goes on at imm, which is ahead, if ra is not 0 (aux 1: if it is 0)
  kEnter = 4,  ///< before a loop: it may go round imm times
  kAgain = 5,  ///< goes round: on at imm, which is behind, if ra is not 0 (aux 1: if it is 0, aux 2: always)
  kSet = 6,  ///< rd = imm, sign-extended
  kSetHigh = 7,  ///< the high 32 bits of rd = imm
  kMove = 8,  ///< rd = ra
  kSplat = 9,  ///< all lanes of rd = ra
  kExtract = 10,  ///< rd = lane of ra; the lane is the second operand's low 4 bits
  kInsert = 11,  ///< a lane of rd = ra
  kSum = 12,  ///< rd += lane 0 of ra, then lane 1, and so on
  kInfo = 13,  ///< rd = what imm (an info) names
  kAdd = 16,  ///< a + b
  kSub = 17,  ///< a - b
  kMul = 18,  ///< a * b
  kDiv = 19,  ///< a / b, floating point
  kDivUnsigned = 20,  ///< a / b
  kDivSigned = 21,  ///< a / b toward 0; the least number / -1 wraps
  kRemUnsigned = 22,  ///< what remains of a / b
  kRemSigned = 23,  ///< what remains of a / b, with the sign of a
  kAnd = 24,  ///< bits that both have
  kOr = 25,  ///< bits that one has
  kXor = 26,  ///< bits in which they differ
  kShiftLeft = 27,  ///< a << b, modulo the element's bits
  kShiftRight = 28,  ///< a >> b with zeros from above
  kShiftSigned = 29,  ///< a >> b with the sign from above
  kMin = 30,  ///< the lesser, of unsigned numbers; IEEE 754-2019 minimum
  kMax = 31,  ///< the greater, of unsigned numbers; IEEE 754-2019 maximum
  kMinSigned = 32,  ///< the lesser, of signed numbers
  kMaxSigned = 33,  ///< the greater, of signed numbers
  kCompare = 34,  ///< 1 if a is what aux says, a sum: 1 less, 2 equal, 4 greater, 8 unordered; otherwise 0
  kCompareSigned = 35,  ///< the same of signed numbers
  kSelect = 36,  ///< rb if ra is not 0, otherwise rc; lane by lane
  kPopcount = 37,  ///< bits of a that are 1
  kLeadingZeros = 38,  ///< zeros above a's highest 1; the element's bits if there is none
  kTrailingZeros = 39,  ///< zeros below a's lowest 1; the element's bits if there is none
  kSwapBytes = 40,  ///< a's bytes in the other order
  kTruncate = 41,  ///< the element's bits of a
  kSignExtend = 42,  ///< a, an integer of element aux, with its sign
  kFromUnsigned = 43,  ///< the nearest number to a, an unsigned integer of element aux
  kFromSigned = 44,  ///< the nearest number to a, a signed integer of element aux
  kToUnsigned = 45,  ///< a, of element aux, toward 0; the nearest integer there is; 0 of NaN
  kToSigned = 46,  ///< the same, to a signed integer
  kConvert = 47,  ///< a, of element aux, rounded to the nearest
  kLoad = 48,  ///< rd = the element in memory at ra + imm; vector: 16 of them
  kStore = 49,  ///< the element in memory at ra + imm = rd; vector: 16 of them
  kTake = 50,  ///< rd = the element in the payload at ra + imm
  kTakeLanes = 51,  ///< lanes of rd = 16 elements in the payload at ra + imm; lanes beyond its end stay as they are
  kPut = 52,  ///< writes an element to the output stream
  kStreamout = 53,  ///< writes as many first lanes of ra as the second operand says, 16 at most
  kSpvaccVx = 54,  ///< table[i] += rb for lanes i of rd in their order, if i < rc; the table is at ra
  kSpvaccVv = 55,  ///< the same with the lane of rb
  kSpvaccXv = 56,  ///< rd += table[i] for lanes i of ra in their order, if i < rc; the table is at rb
};

/// Name of a op as users write it; "?" for a value that is none.
constexpr const char* name_of(Op value) {
  switch (value) {
    case Op::kNone: return "none";
    case Op::kEnd: return "end";
    case Op::kJump: return "jump";
    case Op::kBranch: return "branch";
    case Op::kEnter: return "enter";
    case Op::kAgain: return "again";
    case Op::kSet: return "set";
    case Op::kSetHigh: return "set_high";
    case Op::kMove: return "move";
    case Op::kSplat: return "splat";
    case Op::kExtract: return "extract";
    case Op::kInsert: return "insert";
    case Op::kSum: return "sum";
    case Op::kInfo: return "info";
    case Op::kAdd: return "add";
    case Op::kSub: return "sub";
    case Op::kMul: return "mul";
    case Op::kDiv: return "div";
    case Op::kDivUnsigned: return "div_unsigned";
    case Op::kDivSigned: return "div_signed";
    case Op::kRemUnsigned: return "rem_unsigned";
    case Op::kRemSigned: return "rem_signed";
    case Op::kAnd: return "and";
    case Op::kOr: return "or";
    case Op::kXor: return "xor";
    case Op::kShiftLeft: return "shift_left";
    case Op::kShiftRight: return "shift_right";
    case Op::kShiftSigned: return "shift_signed";
    case Op::kMin: return "min";
    case Op::kMax: return "max";
    case Op::kMinSigned: return "min_signed";
    case Op::kMaxSigned: return "max_signed";
    case Op::kCompare: return "compare";
    case Op::kCompareSigned: return "compare_signed";
    case Op::kSelect: return "select";
    case Op::kPopcount: return "popcount";
    case Op::kLeadingZeros: return "leading_zeros";
    case Op::kTrailingZeros: return "trailing_zeros";
    case Op::kSwapBytes: return "swap_bytes";
    case Op::kTruncate: return "truncate";
    case Op::kSignExtend: return "sign_extend";
    case Op::kFromUnsigned: return "from_unsigned";
    case Op::kFromSigned: return "from_signed";
    case Op::kToUnsigned: return "to_unsigned";
    case Op::kToSigned: return "to_signed";
    case Op::kConvert: return "convert";
    case Op::kLoad: return "load";
    case Op::kStore: return "store";
    case Op::kTake: return "take";
    case Op::kTakeLanes: return "take_lanes";
    case Op::kPut: return "put";
    case Op::kStreamout: return "streamout";
    case Op::kSpvaccVx: return "spvacc_vx";
    case Op::kSpvaccVv: return "spvacc_vv";
    case Op::kSpvaccXv: return "spvacc_xv";
  }
  return "?";
}

/// Whether `value` is one of Op's enumerators.
constexpr bool is_known(Op value) { return name_of(value)[0] != '?'; }

/// All enumerators of Op, in order of value.
inline constexpr std::array<Op, 55> kAllOp{Op::kNone, Op::kEnd, Op::kJump, Op::kBranch, Op::kEnter, Op::kAgain, Op::kSet, Op::kSetHigh, Op::kMove, Op::kSplat, Op::kExtract, Op::kInsert, Op::kSum, Op::kInfo, Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kDivUnsigned, Op::kDivSigned, Op::kRemUnsigned, Op::kRemSigned, Op::kAnd, Op::kOr, Op::kXor, Op::kShiftLeft, Op::kShiftRight, Op::kShiftSigned, Op::kMin, Op::kMax, Op::kMinSigned, Op::kMaxSigned, Op::kCompare, Op::kCompareSigned, Op::kSelect, Op::kPopcount, Op::kLeadingZeros, Op::kTrailingZeros, Op::kSwapBytes, Op::kTruncate, Op::kSignExtend, Op::kFromUnsigned, Op::kFromSigned, Op::kToUnsigned, Op::kToSigned, Op::kConvert, Op::kLoad, Op::kStore, Op::kTake, Op::kTakeLanes, Op::kPut, Op::kStreamout, Op::kSpvaccVx, Op::kSpvaccVv, Op::kSpvaccXv};

/// Attribute `auxes` of a op.
constexpr std::uint32_t auxes_of(Op value) {
  switch (value) {
    case Op::kNone: return 0;
    case Op::kEnd: return 1;
    case Op::kJump: return 1;
    case Op::kBranch: return 2;
    case Op::kEnter: return 1;
    case Op::kAgain: return 3;
    case Op::kSet: return 1;
    case Op::kSetHigh: return 1;
    case Op::kMove: return 1;
    case Op::kSplat: return 1;
    case Op::kExtract: return 1;
    case Op::kInsert: return 1;
    case Op::kSum: return 1;
    case Op::kInfo: return 1;
    case Op::kAdd: return 1;
    case Op::kSub: return 1;
    case Op::kMul: return 1;
    case Op::kDiv: return 1;
    case Op::kDivUnsigned: return 1;
    case Op::kDivSigned: return 1;
    case Op::kRemUnsigned: return 1;
    case Op::kRemSigned: return 1;
    case Op::kAnd: return 1;
    case Op::kOr: return 1;
    case Op::kXor: return 1;
    case Op::kShiftLeft: return 1;
    case Op::kShiftRight: return 1;
    case Op::kShiftSigned: return 1;
    case Op::kMin: return 1;
    case Op::kMax: return 1;
    case Op::kMinSigned: return 1;
    case Op::kMaxSigned: return 1;
    case Op::kCompare: return 16;
    case Op::kCompareSigned: return 8;
    case Op::kSelect: return 1;
    case Op::kPopcount: return 1;
    case Op::kLeadingZeros: return 1;
    case Op::kTrailingZeros: return 1;
    case Op::kSwapBytes: return 1;
    case Op::kTruncate: return 1;
    case Op::kSignExtend: return 4;
    case Op::kFromUnsigned: return 4;
    case Op::kFromSigned: return 4;
    case Op::kToUnsigned: return 8;
    case Op::kToSigned: return 8;
    case Op::kConvert: return 8;
    case Op::kLoad: return 1;
    case Op::kStore: return 1;
    case Op::kTake: return 1;
    case Op::kTakeLanes: return 1;
    case Op::kPut: return 1;
    case Op::kStreamout: return 1;
    case Op::kSpvaccVx: return 1;
    case Op::kSpvaccVv: return 1;
    case Op::kSpvaccXv: return 1;
  }
  return 0;
}

/// Attribute `form` of a op.
constexpr std::uint32_t form_of(Op value) {
  switch (value) {
    case Op::kNone: return 0;
    case Op::kEnd: return 520;
    case Op::kJump: return 4608;
    case Op::kBranch: return 4612;
    case Op::kEnter: return 8704;
    case Op::kAgain: return 12804;
    case Op::kSet: return 513;
    case Op::kSetHigh: return 515;
    case Op::kMove: return 1637;
    case Op::kSplat: return 1061;
    case Op::kExtract: return 1101;
    case Op::kInsert: return 1071;
    case Op::kSum: return 1095;
    case Op::kInfo: return 513;
    case Op::kAdd: return 1773;
    case Op::kSub: return 1773;
    case Op::kMul: return 1773;
    case Op::kDiv: return 1773;
    case Op::kDivUnsigned: return 1773;
    case Op::kDivSigned: return 1773;
    case Op::kRemUnsigned: return 1773;
    case Op::kRemSigned: return 1773;
    case Op::kAnd: return 1773;
    case Op::kOr: return 1773;
    case Op::kXor: return 1773;
    case Op::kShiftLeft: return 1773;
    case Op::kShiftRight: return 1773;
    case Op::kShiftSigned: return 1773;
    case Op::kMin: return 1773;
    case Op::kMax: return 1773;
    case Op::kMinSigned: return 1773;
    case Op::kMaxSigned: return 1773;
    case Op::kCompare: return 1773;
    case Op::kCompareSigned: return 1773;
    case Op::kSelect: return 2045;
    case Op::kPopcount: return 1637;
    case Op::kLeadingZeros: return 1637;
    case Op::kTrailingZeros: return 1637;
    case Op::kSwapBytes: return 1637;
    case Op::kTruncate: return 1637;
    case Op::kSignExtend: return 1637;
    case Op::kFromUnsigned: return 1637;
    case Op::kFromSigned: return 1637;
    case Op::kToUnsigned: return 1637;
    case Op::kToSigned: return 1637;
    case Op::kConvert: return 1637;
    case Op::kLoad: return 3621;
    case Op::kStore: return 3622;
    case Op::kTake: return 2565;
    case Op::kTakeLanes: return 3111;
    case Op::kPut: return 516;
    case Op::kStreamout: return 1100;
    case Op::kSpvaccVx: return 1086;
    case Op::kSpvaccVv: return 1214;
    case Op::kSpvaccXv: return 1119;
  }
  return 0;
}

/// Attribute `types` of a op.
constexpr std::uint32_t types_of(Op value) {
  switch (value) {
    case Op::kNone: return 0;
    case Op::kEnd: return 8;
    case Op::kJump: return 8;
    case Op::kBranch: return 8;
    case Op::kEnter: return 8;
    case Op::kAgain: return 8;
    case Op::kSet: return 8;
    case Op::kSetHigh: return 8;
    case Op::kMove: return 8;
    case Op::kSplat: return 8;
    case Op::kExtract: return 8;
    case Op::kInsert: return 8;
    case Op::kSum: return 63;
    case Op::kInfo: return 8;
    case Op::kAdd: return 63;
    case Op::kSub: return 63;
    case Op::kMul: return 63;
    case Op::kDiv: return 48;
    case Op::kDivUnsigned: return 15;
    case Op::kDivSigned: return 15;
    case Op::kRemUnsigned: return 15;
    case Op::kRemSigned: return 15;
    case Op::kAnd: return 15;
    case Op::kOr: return 15;
    case Op::kXor: return 15;
    case Op::kShiftLeft: return 15;
    case Op::kShiftRight: return 15;
    case Op::kShiftSigned: return 15;
    case Op::kMin: return 63;
    case Op::kMax: return 63;
    case Op::kMinSigned: return 15;
    case Op::kMaxSigned: return 15;
    case Op::kCompare: return 63;
    case Op::kCompareSigned: return 15;
    case Op::kSelect: return 8;
    case Op::kPopcount: return 15;
    case Op::kLeadingZeros: return 15;
    case Op::kTrailingZeros: return 15;
    case Op::kSwapBytes: return 14;
    case Op::kTruncate: return 15;
    case Op::kSignExtend: return 15;
    case Op::kFromUnsigned: return 48;
    case Op::kFromSigned: return 48;
    case Op::kToUnsigned: return 15;
    case Op::kToSigned: return 15;
    case Op::kConvert: return 240;
    case Op::kLoad: return 15;
    case Op::kStore: return 15;
    case Op::kTake: return 15;
    case Op::kTakeLanes: return 15;
    case Op::kPut: return 15;
    case Op::kStreamout: return 15;
    case Op::kSpvaccVx: return 252;
    case Op::kSpvaccVv: return 252;
    case Op::kSpvaccXv: return 252;
  }
  return 0;
}

inline constexpr std::uint32_t kHandlerMagic = 1279543381;  ///< first 4 bytes of a binary: UHDL in memory order
inline constexpr std::uint32_t kHandlerVersion = 1;  ///< version of the binary
inline constexpr std::uint32_t kScalarRegisters = 64;  ///< of 64 bits
inline constexpr std::uint32_t kVectorRegisters = 32;  ///< of 16 lanes
inline constexpr std::uint32_t kLanes = 16;  ///< of a vector register, 64 bits each
inline constexpr std::uint32_t kMostLoops = 64;  ///< loops of a binary
inline constexpr std::uint32_t kMostWords = 16384;  ///< instructions of a binary
inline constexpr std::uint32_t kMostMemoryBytes = 16777216;  ///< memory of a handler
inline constexpr std::uint32_t kMostPayloadBytes = 8192;  ///< payload of a packet
inline constexpr std::uint32_t kMostOutputBytes = 65536;  ///< what a function may write to the output stream, each time it runs

/// One instruction.
struct Instruction {
  Op op{};  ///< what it does
  bool vector{};  ///< on 16 lanes
  Element element{};  ///< of what
  bool immediate{};  ///< the second operand is imm, sign-extended
  std::uint8_t aux{};  ///< which of its variants
  std::uint8_t rd{};  ///< destination
  std::uint8_t ra{};  ///< first operand
  std::uint32_t imm{};  ///< number, offset or word; without any: rb in bits 7:0, rc in bits 15:8
  friend constexpr bool operator==(const Instruction&, const Instruction&) = default;
};

/// Encoded form of Instruction: 1 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 1> encode(const Instruction& value) {
  std::array<std::uint64_t, 1> words{};
  words[0] |= (static_cast<std::uint64_t>(value.op) & 0x7fU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.vector) & 0x1U) << 7U;
  words[0] |= (static_cast<std::uint64_t>(value.element) & 0x7U) << 8U;
  words[0] |= (static_cast<std::uint64_t>(value.immediate) & 0x1U) << 11U;
  words[0] |= (static_cast<std::uint64_t>(value.aux) & 0xfU) << 12U;
  words[0] |= (static_cast<std::uint64_t>(value.rd) & 0xffU) << 16U;
  words[0] |= (static_cast<std::uint64_t>(value.ra) & 0xffU) << 24U;
  words[0] |= (static_cast<std::uint64_t>(value.imm) & 0xffffffffU) << 32U;
  return words;
}

/// Decodes a Instruction without checking; see `well_formed_instruction`.
constexpr Instruction decode_instruction(const std::array<std::uint64_t, 1>& words) {
  Instruction value{};
  value.op = static_cast<Op>((words[0]) & 0x7fU);
  value.vector = ((words[0] >> 7U) & 0x1U) != 0;
  value.element = static_cast<Element>((words[0] >> 8U) & 0x7U);
  value.immediate = ((words[0] >> 11U) & 0x1U) != 0;
  value.aux = static_cast<std::uint8_t>((words[0] >> 12U) & 0xfU);
  value.rd = static_cast<std::uint8_t>((words[0] >> 16U) & 0xffU);
  value.ra = static_cast<std::uint8_t>((words[0] >> 24U) & 0xffU);
  value.imm = static_cast<std::uint32_t>((words[0] >> 32U) & 0xffffffffU);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const Instruction& value) {
  return is_known(value.op) &&
         is_known(value.element) &&
         value.aux <= 0xfU;
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_instruction(const std::array<std::uint64_t, 1>& words) {
  const Instruction value = decode_instruction(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kInstructionWords = 1;

}  // namespace unisono::handler
