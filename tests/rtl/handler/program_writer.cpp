#include "program_writer.hpp"

namespace unisono::handler {

std::uint32_t ProgramWriter::bits() {
  switch (up_to(4)) {
    case 0:
      return up_to(20);
    case 1:
      return 0U - up_to(20);
    case 2:
      return any({0x7fU, 0x80U, 0xffU, 0x8000U, 0x7fffffffU, 0x80000000U, 0x7f800000U, 0x3f800000U, 0x00800000U});
    default:
      return static_cast<std::uint32_t>(dice_.below(std::uint64_t{1} << 32U));
  }
}

/// Eight bytes with which something may happen: as integers, as one number of fp64, or two of fp32.
std::uint64_t ProgramWriter::operand() {
  const std::uint64_t random = dice_.next();
  switch (up_to(8)) {
    case 0:
      return bits() | std::uint64_t{bits()} << 32U;
    case 1:  // short fractions, whose quotients and sums end
      return random & 0xffff000000000000U;
    case 2:
      return random & 0xffff0000ffff0000U;
    case 3:  // exponents around 1
      return (random & 0x800fffffffffffffU) | std::uint64_t{1013 + up_to(70)} << 52U;
    case 4: {
      const std::uint64_t exponent = 117 + up_to(40);
      return (random & 0x807fffff807fffffU) | exponent << 23U | exponent << 55U;
    }
    case 5:  // subnormal
      return one_of(2) ? random & 0x800fffffffffffffU : random & 0x807fffff807fffffU;
    case 6:  // one number apart from a power of two
      return (std::uint64_t{1} << up_to(64)) + up_to(3) - 1;
    default:
      return random;
  }
}

/// Integers of all kinds, on scalars or lanes.
void ProgramWriter::integers(bool vector) {
  const Element element = whole();
  const std::uint8_t rd = vector ? static_cast<std::uint8_t>(up_to(kVectors)) : integer();
  const std::uint8_t ra = vector ? this->vector() : scalar();
  const std::uint32_t rb = vector ? this->vector() : scalar();
  const bool immediate = one_of(3);
  const std::uint32_t second = immediate ? bits() : pair(rb);
  const std::uint32_t choice = up_to(10);
  if (choice < 5) {
    const Op op = any({Op::kAdd, Op::kSub, Op::kMul, Op::kAnd, Op::kOr, Op::kXor, Op::kShiftLeft, Op::kShiftRight,
                       Op::kShiftSigned, Op::kMin, Op::kMax, Op::kMinSigned, Op::kMaxSigned});
    put(op, element, vector, rd, ra, second, immediate);
  } else if (choice == 5) {
    const bool is_signed = one_of(2);
    put(is_signed ? Op::kCompareSigned : Op::kCompare, element, vector, rd, ra, second, immediate,
        static_cast<std::uint8_t>(up_to(is_signed ? 8 : 16)));
  } else if (choice == 6) {
    const Op op = any({Op::kPopcount, Op::kLeadingZeros, Op::kTrailingZeros, Op::kTruncate, Op::kSwapBytes});
    put(op, op == Op::kSwapBytes && element == Element::kI8 ? Element::kI16 : element, vector, rd, ra, 0);
  } else if (choice == 7) {
    put(Op::kSignExtend, element, vector, rd, ra, 0, false,
        static_cast<std::uint8_t>(up_to(static_cast<std::uint32_t>(element) + 1)));
  } else if (choice == 8) {
    const Op op = any({Op::kDivUnsigned, Op::kDivSigned, Op::kRemUnsigned, Op::kRemSigned});
    if (!one_of(30)) {  // a divisor that is not 0
      const std::uint8_t divisor = vector ? kTemporaryVector : kTemporary;
      put(Op::kOr, element, vector, divisor, static_cast<std::uint8_t>(rb), 1, true);
      put(op, element, vector, rd, ra, pair(divisor));
    } else {
      put(op, element, vector, rd, ra, second, immediate);
    }
  } else {
    put(Op::kSelect, Element::kI64, vector, rd, ra, pair(rb, vector ? this->vector() : scalar()));
  }
}

/// 1 in the place of NaN.
void ProgramWriter::no_nan(Element element, bool vector, std::uint8_t to) {
  const bool wide = element == Element::kFp64;
  const std::uint8_t is = vector ? kTemporaryVector : kTemporary;
  const std::uint8_t one = vector ? (wide ? kVectorOne64 : kVectorOne32) : (wide ? kOne64 : kOne32);
  put(Op::kCompare, element, vector, is, to, pair(to), false, 8);
  put(Op::kSelect, Element::kI64, vector, to, is, pair(one, to));
}

void ProgramWriter::reals(bool vector) {
  const Element element = real();
  const std::uint8_t rd =
      static_cast<std::uint8_t>(vector ? kVectors + up_to(kTemporaryVector - kVectors) : kIntegers + up_to(kReals));
  const std::uint8_t ra = vector ? this->vector() : scalar();
  const std::uint32_t rb = vector ? this->vector() : scalar();
  const bool immediate = one_of(8);
  const std::uint32_t second = immediate ? bits() : pair(rb);
  if (one_of(5)) {
    put(Op::kCompare, element, vector, vector ? static_cast<std::uint8_t>(up_to(kVectors)) : integer(), ra, second,
        immediate, static_cast<std::uint8_t>(up_to(16)));
    return;
  }
  const Op op = any({Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kMin, Op::kMax});
  put(op, element, vector, rd, ra, second, immediate);
  no_nan(element, vector, rd);
}

/// A register with a number that stands half way between two of `to`, often: of an integer or of fp32, fp64 made of
/// another register's bits.
std::uint8_t ProgramWriter::half_way(Element to, Element from, bool vector, std::uint8_t of) {
  const auto rd = static_cast<std::uint8_t>((vector ? kTemporaryVector : kTemporary) + 1);
  if (static_cast<std::uint32_t>(from) < 4) {
    put(Op::kShiftRight, Element::kI64, vector, rd, of, to == Element::kFp64 ? 10 : 39, true);
    put(Op::kOr, Element::kI64, vector, rd, rd, 1, true);
    return rd;
  }
  // Exponents 96 to 127: those of small numbers of fp16, subnormal ones too.
  const bool brain = to == Element::kBf16;
  put(Op::kAnd, Element::kI32, vector, rd, of, brain ? 0xffff0000U : 0x8fffe000U, true);
  put(Op::kOr, Element::kI32, vector, rd, rd, brain ? 0x8000U : 0x30001000U, true);
  if (from != Element::kFp64) return rd;
  no_nan(Element::kFp32, vector, rd);
  put(Op::kConvert, Element::kFp64, vector, rd, rd, 0, false, static_cast<std::uint8_t>(Element::kFp32));
  put(Op::kOr, Element::kI64, vector, rd, rd, 0x10000000U, true);
  return rd;
}

void ProgramWriter::convert(bool vector) {
  const std::uint8_t real_rd =
      static_cast<std::uint8_t>(vector ? kVectors + up_to(kTemporaryVector - kVectors) : kIntegers + up_to(kReals));
  const std::uint8_t rd = vector ? static_cast<std::uint8_t>(up_to(kVectors)) : integer();
  std::uint8_t ra = vector ? this->vector() : scalar();
  const bool half = one_of(2);
  const auto aux = [](Element of) { return static_cast<std::uint8_t>(of); };
  switch (up_to(4)) {
    case 0: {
      const Element to = real();
      if (half) ra = half_way(to, Element::kI64, vector, ra);
      put(any({Op::kFromUnsigned, Op::kFromSigned}), to, vector, real_rd, ra, 0, false,
          aux(half ? Element::kI64 : whole()));
      return;
    }
    case 1:
      put(any({Op::kToUnsigned, Op::kToSigned}), whole(), vector, rd, ra, 0, false, aux(real()));
      return;
    case 2: {
      const Element from = any({Element::kFp64, Element::kFp16, Element::kBf16});
      if (half && from == Element::kFp64) ra = half_way(Element::kFp32, from, vector, ra);
      put(Op::kConvert, Element::kFp32, vector, real_rd, ra, 0, false, aux(from));
      no_nan(Element::kFp32, vector, real_rd);
      return;
    }
    default: {
      const Element to = any({Element::kFp64, Element::kFp16, Element::kBf16});
      if (half) ra = half_way(to, Element::kFp32, vector, ra);
      put(Op::kMove, Element::kI64, vector, real_rd, ra, 0);
      no_nan(Element::kFp32, vector, real_rd);
      put(Op::kConvert, to, vector, rd, real_rd, 0, false, aux(Element::kFp32));
    }
  }
}

/// A register with an address from which `bytes` bytes are within what loads and stores use; seldom one at memory's
/// end, or far beyond.
std::uint8_t ProgramWriter::address(std::uint32_t bytes) {
  if (one_of(40)) {
    put(Op::kSet, Element::kI64, false, kTemporary, 0, kMemory - bytes + up_to(3));
  } else if (one_of(60)) {
    put(Op::kSetHigh, Element::kI64, false, kTemporary, 0, bits() | 1U);
  } else {
    put(Op::kAnd, Element::kI64, false, kTemporary, scalar(), 1023, true);
    put(Op::kAdd, Element::kI64, false, kTemporary, kTemporary, kTables + 512 + up_to(64), true);
    return kTemporary;
  }
  return kTemporary;
}

void ProgramWriter::memory() {
  const Element element = whole();
  const bool vector = one_of(2);
  const std::uint8_t base = address(bytes_of(element) * (vector ? kLanes : 1U));
  const std::uint32_t offset = one_of(2) ? 0 : 0U - up_to(32);
  if (one_of(2)) {
    const auto rd = static_cast<std::uint8_t>(up_to(vector ? kVectors : kIntegers));
    put(Op::kLoad, element, vector, rd, base, offset);
    landed(rd, vector);
  } else {
    put(Op::kStore, element, vector, vector ? this->vector() : scalar(), base, offset);
  }
}

void ProgramWriter::payload() {
  const Element element = whole();
  put(Op::kInfo, Element::kI64, false, kTemporary, 0, static_cast<std::uint32_t>(Info::kLength));
  if (one_of(3)) {
    const auto rd = static_cast<std::uint8_t>(up_to(kVectors));
    put(Op::kTakeLanes, element, true, rd, kTemporary, one_of(20) ? 1 : 0U - up_to(140));
    landed(rd, true);
    return;
  }
  // Anywhere below the length, which may be less than it takes to read.
  put(Op::kOr, Element::kI64, false, kTemporary, kTemporary, 1, true);
  put(Op::kRemUnsigned, Element::kI64, false, kTemporary, scalar(), pair(kTemporary));
  const bool vector = one_of(2);
  const auto rd = static_cast<std::uint8_t>(up_to(vector ? kVectors : kIntegers));
  if (vector) {
    put(Op::kTakeLanes, element, true, rd, kTemporary, 0);
  } else {
    put(Op::kShiftRight, Element::kI64, false, kTemporary, kTemporary, up_to(2), true);
    put(Op::kTake, one_of(3) ? element : Element::kI8, false, rd, kTemporary, 0);
  }
  landed(rd, vector);
}

void ProgramWriter::output() {
  if (one_of(2)) {
    put(Op::kPut, whole(), false, 0, scalar(), 0);
  } else if (one_of(3)) {
    put(Op::kStreamout, whole(), true, 0, vector(), pair(scalar()));
  } else {
    put(Op::kStreamout, whole(), true, 0, vector(), one_of(20) ? bits() : up_to(18), true);
  }
}

/// Between scalars and lanes.
void ProgramWriter::lanes() {
  const auto to_vector = static_cast<std::uint8_t>(up_to(kVectors));
  const bool immediate = one_of(2);
  const std::uint32_t second = immediate ? bits() : pair(scalar());
  switch (up_to(has_reals_ ? 6 : 5)) {
    case 0:
      put(Op::kSplat, Element::kI64, true, to_vector, scalar(), 0);
      return;
    case 1:
      put(Op::kExtract, Element::kI64, true, integer(), vector(), second, immediate);
      return;
    case 2:
      put(Op::kInsert, Element::kI64, true, to_vector, scalar(), second, immediate);
      return;
    case 3:
      if (one_of(2)) {
        put(Op::kMove, Element::kI64, true, to_vector, vector(), 0);
      } else {
        put(Op::kMove, Element::kI64, false, integer(), scalar(), 0);
      }
      return;
    case 4:
      put(Op::kSum, whole(), true, integer(), vector(), 0);
      return;
    default: {
      const Element element = real();
      const auto rd = static_cast<std::uint8_t>(kIntegers + up_to(kReals));
      put(Op::kSum, element, true, rd, vector(), 0);
      no_nan(element, false, rd);
    }
  }
}

void ProgramWriter::loop(std::uint32_t depth) {
  const std::uint8_t number = loops_++;
  const auto counter = static_cast<std::uint8_t>(56 - depth);
  const std::uint32_t rounds = 1 + up_to(6);
  put(Op::kSet, Element::kI64, false, counter, 0, rounds);
  put(Op::kEnter, Element::kI64, false, number, 0, one_of(20) ? rounds / 2 : rounds + up_to(3));
  const auto head = static_cast<std::uint32_t>(words_.size());
  block(up_to(5), depth + 1);
  put(Op::kSub, Element::kI64, false, counter, counter, 1, true);
  if (one_of(3)) {  // as loops are compiled
    put(Op::kCompare, Element::kI32, false, kTemporary, counter, 0, true, 2);
    put(Op::kAgain, Element::kI64, false, number, kTemporary, head, false, 1);
    return;
  }
  switch (up_to(12)) {
    case 0:
      put(Op::kAgain, Element::kI64, false, number, counter, head, false, 1);
      break;
    case 1:
      if (one_of(4)) {
        put(Op::kAgain, Element::kI64, false, number, 0, head, false, 2);
        break;
      }
      [[fallthrough]];
    default:
      put(Op::kAgain, Element::kI64, false, number, counter, head, false, 0);
  }
}

void ProgramWriter::statement(std::uint32_t depth) {
  const std::uint32_t choice = up_to(19);
  if (!has_reals_ && (choice == 8 || choice == 9)) {
    integers(choice == 8);
    return;
  }
  switch (choice) {
    case 0:
      put(Op::kSet, Element::kI64, false, integer(), 0, bits());
      return;
    case 1:
      put(Op::kSetHigh, Element::kI64, false, integer(), 0, bits());
      return;
    case 2:
      put(Op::kInfo, Element::kI64, false, integer(), 0, up_to(6));
      return;
    case 3:
      if (depth < 3 && loops_ < 20) {
        loop(depth);
        return;
      }
      [[fallthrough]];
    case 4:
    case 5:
      integers(false);
      return;
    case 6:
    case 7:
      integers(true);
      return;
    case 8:
      reals(one_of(2));
      return;
    case 9:
      convert(one_of(2));
      return;
    case 10:
      memory();
      return;
    case 11:
      if (has_payload_ || one_of(20)) payload();
      return;
    case 12:
      output();
      return;
    case 13:
      table();
      return;
    case 14:
      lanes();
      return;
    case 15:
    case 16:
      dense();
      return;
    case 17:
      if (has_payload_) neighbours();
      return;
    default:
      if (has_reals_ && !one_of(3)) {
        reals(one_of(2));
        return;
      }
      // Where it goes is chosen when the function is whole: never between an operation and what hides its NaN.
      ahead_.push_back(words_.size());
      if (one_of(4)) {
        put(Op::kJump, Element::kI64, false, 0, 0, 0);
      } else {
        put(Op::kBranch, Element::kI64, false, 0, scalar(), 0, false, static_cast<std::uint8_t>(up_to(2)));
      }
  }
}

void ProgramWriter::block(std::uint32_t statements, std::uint32_t depth) {
  for (std::uint32_t i = 0; i < statements; ++i) {
    const std::size_t from = ahead_.size();
    statement(depth);
    // Jumps of this statement may go behind the next one, sometimes further.
    for (std::size_t k = 0; k < from; ++k) {
      Instruction& word = words_[ahead_[k]];
      if (word.imm == 0 && words_.size() > ahead_[k] + 1 && one_of(3)) {
        word.imm = static_cast<std::uint32_t>(words_.size());
      }
    }
  }
}

/// Operations on operands that are new for each, whose results are seen at once.
void ProgramWriter::arithmetic() {
  for (std::uint32_t i = 0; i < 100; ++i) {
    for (std::uint32_t k = 0; k < 2; ++k) {
      const auto fresh = static_cast<std::uint8_t>(up_to(kTemporaryVector));
      put(Op::kLoad, Element::kI64, true, fresh, kZero, kTables + 8 * up_to(128));
      put(Op::kExtract, Element::kI64, true, static_cast<std::uint8_t>(up_to(kReals + kIntegers)), fresh, up_to(16),
          true);
    }
    const std::uint32_t choice = up_to(has_reals_ ? 4 : 1);
    if (choice < 2) {
      integers(!one_of(3));
    } else if (choice == 2) {
      reals(!one_of(3));
    } else {
      convert(!one_of(3));
    }
    const Instruction last = words_.back();
    if (last.vector) {
      put(Op::kStreamout, Element::kI64, true, 0, last.rd, 16, true);
    } else {
      put(Op::kPut, Element::kI64, false, 0, last.rd, 0);
    }
  }
}

/// More than there is room for.
void ProgramWriter::flood() {
  const std::uint8_t number = loops_++;
  const Element element = whole();
  put(Op::kSet, Element::kI64, false, kTemporary, 0, kMostOutputBytes / kLanes);
  put(Op::kEnter, Element::kI64, false, number, 0, kMostOutputBytes / kLanes);
  const auto head = static_cast<std::uint32_t>(words_.size());
  put(Op::kStreamout, element, true, 0, vector(), any({13U, 16U}), true);
  put(Op::kSub, Element::kI64, false, kTemporary, kTemporary, 1, true);
  put(Op::kAgain, Element::kI64, false, number, kTemporary, head, false, 0);
}

void ProgramWriter::function(std::uint32_t statements) {
  ahead_.clear();
  put(Op::kSet, Element::kI64, false, kOne32, 0, 0x3f800000U);
  put(Op::kSetHigh, Element::kI64, false, kOne64, 0, 0x3ff00000U);
  put(Op::kSplat, Element::kI64, true, kVectorOne32, kOne32, 0);
  put(Op::kSplat, Element::kI64, true, kVectorOne64, kOne64, 0);
  // Something to compute with.
  for (std::uint8_t i = 0; i < kIntegers; ++i) {
    put(Op::kSet, Element::kI64, false, i, 0, bits());
    if (one_of(2)) put(Op::kSetHigh, Element::kI64, false, i, 0, bits());
  }
  for (std::uint8_t i = 0; i < kVectors; ++i) {
    if (one_of(3)) {
      put(Op::kTakeLanes, whole(), true, i, kZero, 0);
    } else {
      put(Op::kLoad, whole(), true, i, kZero, kTables + up_to(1536));
    }
  }
  if (has_payload_ && one_of(3)) {
    arithmetic();
  } else {
    block(statements, 0);
  }
  if (one_of(30)) flood();
  // What it has computed is seen.
  for (std::uint8_t i = 0; i < kTemporary; ++i) put(Op::kPut, Element::kI64, false, 0, i, 0);
  for (std::uint8_t i = 0; i < kTemporaryVector; ++i) put(Op::kStreamout, Element::kI64, true, 0, i, 16, true);
  const auto last = static_cast<std::uint32_t>(words_.size());
  put(Op::kEnd, Element::kI64, false, 0, 0, one_of(6) ? bits() : 0, true);
  for (const std::size_t at : ahead_) {
    if (words_[at].imm == 0) words_[at].imm = last;
  }
}

Program ProgramWriter::write() {
  Program program;
  words_.clear();
  loops_ = 0;
  for (std::uint32_t f = 0; f < kFunctions; ++f) {
    if (f != static_cast<std::uint32_t>(Function::kPayload) && one_of(2)) continue;
    program.entries[f] = static_cast<std::uint32_t>(words_.size());
    has_payload_ = f == static_cast<std::uint32_t>(Function::kPayload);
    function(5 + up_to(50));
  }
  program.words = words_;
  program.lines.resize(words_.size());
  program.memory_bytes = kMemory - up_to(2) * up_to(9);
  program.data.resize(program.memory_bytes);
  for (std::uint32_t i = kTables; i < program.memory_bytes; i += 8) {
    const std::uint64_t value = operand();
    for (std::uint32_t k = 0; k < 8 && i + k < program.memory_bytes; ++k) {
      program.data[i + k] = static_cast<std::uint8_t>(value >> 8U * k);
    }
  }
  program.source = "random.c";
  return program;
}

}  // namespace unisono::handler
