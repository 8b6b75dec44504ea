// Tables, what stands behind them and behind loads and takes so that somebody must wait, and what goes together or
// must not.
#include <algorithm>
#include <vector>

#include "program_writer.hpp"

namespace unisono::handler {

/// spvacc. Tables of integers are where loads and stores are, tables of floating point are not.
void ProgramWriter::table() {
  const Element element =
      has_reals_ ? any({Element::kI32, Element::kI64, Element::kFp32, Element::kFp64, Element::kFp16, Element::kBf16})
                 : any({Element::kI32, Element::kI64});
  const auto number = static_cast<std::uint32_t>(element);
  const bool is_real = number >= 4;
  const std::uint32_t start = is_real ? (number - 4) * 512 : kTables + (one_of(3) ? up_to(512) : 8 * up_to(64));
  const std::uint32_t room = is_real ? 512 / bytes_of(element) : 32;
  // Near memory's end stands what may be NaN.
  const std::uint32_t beyond = kMemory - (is_real ? 1 : up_to(64));
  const std::uint8_t indexes = kTemporaryVector;
  const std::uint8_t base = kTemporary + 1;
  if (one_of(8)) {  // most or all lanes idle
    put(Op::kOr, Element::kI32, true, indexes, vector(), one_of(2) ? 0xffffff00U : 0xffffffc0U, true);
  } else {
    put(Op::kAnd, Element::kI64, true, indexes, vector(), any({3U, 15U, 63U, 127U}), true);
  }
  put(Op::kSet, Element::kI64, false, kTemporary, 0, 1 + up_to(room));
  // Seldom a table whose end is not in memory.
  put(Op::kSet, Element::kI64, false, base, 0, one_of(25) ? beyond : start);
  if (one_of(3)) {
    const auto rd = static_cast<std::uint8_t>(is_real ? kIntegers + up_to(kReals) : up_to(kIntegers));
    put(Op::kSpvaccXv, element, true, rd, indexes, pair(base, kTemporary));
    if (is_real) no_nan(element == Element::kFp64 ? Element::kFp64 : Element::kFp32, false, rd);
    return;
  }
  const bool each = one_of(2);
  if (!is_real) {
    // Some at once, which may meet in the table, and then somebody who looks at it.
    for (std::uint32_t more = 1 + up_to(3); more != 0; --more) {
      std::uint8_t which = one_of(2) ? indexes : vector();
      std::uint8_t value = vector();
      if (one_of(3)) {  // what lands just then
        std::uint8_t& lands = one_of(2) ? which : value;
        lands = static_cast<std::uint8_t>(up_to(kVectors));
        if (one_of(2)) {
          put(Op::kTakeLanes, Element::kI8, true, lands, kZero, 0);
        } else {
          put(Op::kLoad, Element::kI8, true, lands, kZero, kTables + up_to(1536));
        }
      }
      if (each) {
        put(Op::kSpvaccVv, element, true, which, base, pair(value, kTemporary));
      } else {
        put(Op::kSpvaccVx, element, true, which, base, pair(scalar(), kTemporary));
      }
    }
    meets(start);
    return;
  }
  // Numbers that are finite, made as integers: of fp32 up to 2^32, or very small.
  const std::uint8_t value = each ? std::uint8_t{27} : std::uint8_t{57};
  if (element == Element::kFp64) {
    put(Op::kAnd, Element::kI64, each, value, each ? vector() : scalar(), bits(), true);
    put(Op::kFromSigned, Element::kFp64, each, value, value, 0, false, static_cast<std::uint8_t>(Element::kI64));
  } else {
    put(Op::kAnd, Element::kI32, each, value, each ? vector() : scalar(), one_of(2) ? 0xcfffffffU : 0x87ffffffU, true);
  }
  const Op op = each ? Op::kSpvaccVv : Op::kSpvaccVx;
  put(op, element, true, indexes, base, pair(value, kTemporary));
  if (one_of(2)) put(op, element, true, indexes, base, pair(value, kTemporary));
  meets(start);
}

/// What waits for a table, and what must not.
void ProgramWriter::meets(std::uint32_t table) {
  switch (up_to(6)) {
    case 0:
      put(Op::kLoad, whole(), true, static_cast<std::uint8_t>(up_to(kVectors)), kZero, table + up_to(32));
      return;
    case 1:
      put(Op::kLoad, whole(), false, integer(), kZero, table + up_to(32));
      return;
    case 2:  // where no floating point is
      if (table >= kTables) put(Op::kStore, whole(), false, scalar(), kZero, table + up_to(32));
      return;
    case 3:
      if (has_reals_) reals(true);
      return;
    default:
      return;
  }
}

/// What may come too early, or too late, behind an instruction whose result lands later.
void ProgramWriter::landed(std::uint8_t rd, bool vector) {
  const auto other = static_cast<std::uint8_t>(up_to(vector ? kVectors : kIntegers));
  switch (up_to(8)) {
    case 0:  // reads it first, or second
      put(Op::kAdd, whole(), vector, other, rd, pair(vector ? this->vector() : scalar()));
      return;
    case 1:
      put(Op::kXor, whole(), vector, other, vector ? this->vector() : scalar(), pair(rd));
      return;
    case 2:
      put(Op::kSelect, Element::kI64, vector, other, other, pair(other, rd));
      return;
    case 3:  // writes it
      put(Op::kMove, Element::kI64, vector, rd, vector ? this->vector() : scalar(), 0);
      return;
    case 4:
      if (vector) {
        put(Op::kInsert, Element::kI64, true, rd, scalar(), up_to(16), true);
      } else {
        put(Op::kSetHigh, Element::kI64, false, rd, 0, bits());
      }
      return;
    case 5:
      if (vector) {
        put(Op::kExtract, Element::kI64, true, integer(), rd, up_to(16), true);
      } else {
        put(Op::kSplat, Element::kI64, true, static_cast<std::uint8_t>(up_to(kVectors)), rd, 0);
      }
      return;
    case 6:  // in the same cycle another one is written
      put(Op::kMove, Element::kI64, vector, other, vector ? this->vector() : scalar(), 0);
      return;
    default:
      return;
  }
}

/// Scalars that need one another, in so few registers that those of a cycle often cannot go together: comparisons and
/// branches that read them, or something else, among them.
void ProgramWriter::dense() {
  std::vector<std::size_t> branches;
  const auto few = [this] { return static_cast<std::uint8_t>(up_to(3)); };
  std::uint8_t compared = few();
  for (std::uint32_t left = 3 + up_to(10); left != 0; --left) {
    const Element element = whole();
    const bool immediate = one_of(2);
    const std::uint32_t second = immediate ? bits() : pair(few());
    const std::uint8_t rd = few();
    switch (up_to(9)) {
      case 0:
        put(Op::kSet, Element::kI64, false, rd, 0, up_to(3));
        break;
      case 1:
        put(Op::kSetHigh, Element::kI64, false, rd, 0, up_to(2));
        break;
      case 2:
        put(Op::kSelect, Element::kI64, false, rd, few(), pair(few(), few()));
        break;
      case 3:
      case 4:
        compared = rd;
        put(one_of(2) ? Op::kCompare : Op::kCompareSigned, element, false, rd, few(), second, immediate,
            static_cast<std::uint8_t>(up_to(8)));
        break;
      case 5:
      case 6:
        branches.push_back(words_.size());
        put(Op::kBranch, Element::kI64, false, 0, one_of(4) ? few() : compared, 0, false,
            static_cast<std::uint8_t>(up_to(2)));
        break;
      case 7:
        if (one_of(3)) {
          put(Op::kMul, element, false, rd, few(), pair(few()));
        } else if (one_of(2)) {
          put(Op::kPut, element, false, 0, few(), 0);
        } else {
          put(Op::kSplat, Element::kI64, true, rd, few(), 0);
        }
        break;
      default:
        put(any({Op::kAdd, Op::kSub, Op::kXor, Op::kAnd, Op::kMin, Op::kMaxSigned}), element, false, rd, few(), second,
            immediate);
    }
  }
  for (const std::size_t at : branches) {
    words_[at].imm = static_cast<std::uint32_t>(std::min<std::size_t>(at + 1 + up_to(4), words_.size()));
  }
}

/// Takes of lanes that one read may answer together, or not quite, and those beside something else; and who wants what
/// they bring, or writes where it goes.
void ProgramWriter::neighbours() {
  constexpr std::uint8_t kLimit = 57;
  constexpr std::uint8_t kBase = kTemporary + 1;
  const auto where = [this] { return static_cast<std::uint8_t>(up_to(4)); };
  put(Op::kSet, Element::kI64, false, kLimit, 0, 1 + up_to(32));
  put(Op::kSet, Element::kI64, false, kBase, 0, kTables + 8 * up_to(64));
  put(Op::kInfo, Element::kI64, false, kTemporary, 0, static_cast<std::uint32_t>(Info::kLength));
  put(Op::kOr, Element::kI64, false, kTemporary, kTemporary, 1, true);
  put(Op::kRemUnsigned, Element::kI64, false, kTemporary, scalar(), pair(kTemporary));
  if (!one_of(6)) put(Op::kShiftRight, Element::kI64, false, kTemporary, kTemporary, 1 + up_to(3), true);
  std::uint32_t at = 0;
  std::uint8_t lands = where();
  std::uint8_t before = lands;
  for (std::uint32_t left = 1 + up_to(4); left != 0; --left) {
    switch (up_to(8)) {  // what it goes along with, or is held up by
      case 0:
        put(any({Op::kAdd, Op::kXor, Op::kMul}), whole(), true, where(), where(), pair(where()));
        break;
      case 1:
        put(Op::kLoad, whole(), true, where(), kZero, kTables + up_to(1024));
        break;
      case 2:
        put(Op::kStore, whole(), true, where(), kZero, kTables + up_to(1024));
        break;
      case 3:
        put(one_of(2) ? Op::kMove : Op::kTake, Element::kI64, false, where(), kTemporary, 0);
        if (words_.back().op == Op::kTake) words_.back().element = Element::kI8;
        break;
      case 4:
        put(Op::kSpvaccVx, Element::kI32, true, where(), kBase, pair(scalar(), kLimit));
        break;
      default:
        break;
    }
    const Element element = whole();
    before = lands;
    lands = where();
    put(Op::kTakeLanes, element, true, lands, one_of(12) ? kZero : kTemporary, at);
    at = one_of(8) ? up_to(16) : at + kLanes * bytes_of(one_of(8) ? whole() : element);
    if (at > 200) at = 0;
  }
  switch (up_to(4)) {
    case 0:
      put(Op::kSpvaccVv, whole() == Element::kI64 ? Element::kI64 : Element::kI32, true, before, kBase,
          pair(lands, kLimit));
      return;
    case 1:
      put(Op::kSpvaccVx, Element::kI32, true, lands, kBase, pair(scalar(), kLimit));
      return;
    case 2:
      landed(before, true);
      return;
    default:
      landed(lands, true);
  }
}

}  // namespace unisono::handler
