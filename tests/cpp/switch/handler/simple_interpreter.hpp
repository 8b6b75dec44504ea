// Executes handlers word by word, as the instructions are described: what the interpreter must give, too.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "switch/handler/evaluate.hpp"
#include "switch/handler/interpreter.hpp"

namespace unisono::handler::simple {

using Lanes = std::array<std::uint64_t, kLanes>;

/// An element in memory, little-endian.
inline std::uint64_t read(const std::byte* from, std::uint32_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  return value;
}

constexpr bool divides(Op op) { return op >= Op::kDivUnsigned && op <= Op::kRemSigned; }

constexpr bool is_zero(std::uint64_t value, Element element) { return value << (64U - 8U * bytes_of(element)) == 0; }

/// The state of one run. Registers are 0 at the beginning.
class Machine {
 public:
  Machine(const Program& program, const Surroundings& around, std::uint64_t budget)
      : program_(program), around_(around), budget_(budget) {}

  Outcome run(std::uint32_t entry) {
    std::uint32_t at = entry;
    Outcome outcome;
    Stop stop = Stop::kNone;
    while (stop == Stop::kNone) {
      if (outcome.executed == budget_) {
        stop = Stop::kBudget;
        break;
      }
      ++outcome.executed;
      const Instruction& word = program_.words[at];
      std::uint32_t next = at + 1;
      switch (word.op) {
        case Op::kEnd:
          outcome.verdict = static_cast<std::uint32_t>(second(word));
          outcome.word = at;
          outcome.output_bytes = written_;
          return outcome;
        case Op::kJump:
          next = word.imm;
          break;
        case Op::kBranch:
          if ((scalar_[word.ra] == 0) == (word.aux == 1)) next = word.imm;
          break;
        case Op::kEnter:
          rounds_[word.rd] = word.imm;
          break;
        case Op::kAgain:
          if (word.aux != 2 && (scalar_[word.ra] == 0) != (word.aux == 1)) break;
          if (rounds_[word.rd] == 0) {
            stop = Stop::kLoopBound;
          } else {
            --rounds_[word.rd];
            next = word.imm;
          }
          break;
        default:
          stop = word.vector ? on_lanes(word) : on_scalars(word);
          break;
      }
      if (stop == Stop::kNone) at = next;
    }
    outcome.stop = stop;
    outcome.word = at;
    outcome.output_bytes = written_;
    return outcome;
  }

 private:
  static std::uint64_t number(const Instruction& word) {
    return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(word.imm)});
  }
  /// The second operand, if it is a scalar.
  std::uint64_t second(const Instruction& word) const { return word.immediate ? number(word) : scalar_[rb_of(word)]; }
  /// Where `bytes` bytes at ra + imm begin in `in`, or null if they are not within it.
  template <class Byte>
  Byte* place(const Instruction& word, std::span<Byte> in, std::uint64_t bytes) const {
    const std::uint64_t offset = scalar_[word.ra] + number(word);
    if (bytes > in.size() || offset > in.size() - bytes) return nullptr;
    return in.data() + offset;
  }

  bool write(std::uint64_t value, std::uint32_t bytes) {
    if (around_.output.size() - written_ < bytes) return false;
    std::memcpy(around_.output.data() + written_, &value, bytes);
    written_ += bytes;
    return true;
  }

  Stop on_scalars(const Instruction& word) {
    const std::uint32_t bytes = bytes_of(word.element);
    std::uint64_t& rd = scalar_[word.rd];
    switch (word.op) {
      case Op::kSet:
        rd = number(word);
        return Stop::kNone;
      case Op::kSetHigh:
        rd = (rd & 0xffffffffU) | std::uint64_t{word.imm} << 32U;
        return Stop::kNone;
      case Op::kMove:
        rd = scalar_[word.ra];
        return Stop::kNone;
      case Op::kInfo:
        rd = around_.info[word.imm];
        return Stop::kNone;
      case Op::kSelect:
        rd = scalar_[word.ra] != 0 ? scalar_[rb_of(word)] : scalar_[rc_of(word)];
        return Stop::kNone;
      case Op::kLoad: {
        const std::byte* const from = place(word, around_.memory, bytes);
        if (from == nullptr) return Stop::kMemory;
        rd = read(from, bytes);
        return Stop::kNone;
      }
      case Op::kStore: {
        std::byte* const to = place(word, around_.memory, bytes);
        if (to == nullptr) return Stop::kMemory;
        std::memcpy(to, &rd, bytes);
        return Stop::kNone;
      }
      case Op::kTake: {
        const std::byte* const from = place(word, around_.payload, bytes);
        if (from == nullptr) return Stop::kPayload;
        rd = read(from, bytes);
        return Stop::kNone;
      }
      case Op::kPut:
        return write(scalar_[word.ra], bytes) ? Stop::kNone : Stop::kOutput;
      default:
        break;
    }
    const std::uint64_t b = second(word);
    if (divides(word.op) && is_zero(b, word.element)) return Stop::kDivide;
    rd = evaluate(word.op, word.element, word.aux, scalar_[word.ra], b);
    return Stop::kNone;
  }

  Stop on_lanes(const Instruction& word) {
    const std::uint32_t bytes = bytes_of(word.element);
    switch (word.op) {
      case Op::kMove:
        lanes_[word.rd] = lanes_[word.ra];
        return Stop::kNone;
      case Op::kSplat:
        lanes_[word.rd].fill(scalar_[word.ra]);
        return Stop::kNone;
      case Op::kExtract:
        scalar_[word.rd] = lanes_[word.ra][second(word) % kLanes];
        return Stop::kNone;
      case Op::kInsert:
        lanes_[word.rd][second(word) % kLanes] = scalar_[word.ra];
        return Stop::kNone;
      case Op::kSum:
        for (const std::uint64_t lane : lanes_[word.ra]) {
          scalar_[word.rd] = evaluate(Op::kAdd, word.element, 0, scalar_[word.rd], lane);
        }
        return Stop::kNone;
      case Op::kSelect: {
        const Lanes condition = lanes_[word.ra];
        const Lanes yes = lanes_[rb_of(word)];
        const Lanes no = lanes_[rc_of(word)];
        for (std::uint32_t i = 0; i < kLanes; ++i) lanes_[word.rd][i] = condition[i] != 0 ? yes[i] : no[i];
        return Stop::kNone;
      }
      case Op::kLoad: {
        const std::byte* const from = place(word, around_.memory, std::uint64_t{bytes} * kLanes);
        if (from == nullptr) return Stop::kMemory;
        for (std::size_t i = 0; i < kLanes; ++i) lanes_[word.rd][i] = read(from + i * bytes, bytes);
        return Stop::kNone;
      }
      case Op::kStore: {
        std::byte* const to = place(word, around_.memory, std::uint64_t{bytes} * kLanes);
        if (to == nullptr) return Stop::kMemory;
        for (std::size_t i = 0; i < kLanes; ++i) std::memcpy(to + i * bytes, &lanes_[word.rd][i], bytes);
        return Stop::kNone;
      }
      case Op::kTakeLanes: {
        // A vector may begin anywhere up to the payload's end: lanes beyond it stay as they are.
        // A payload of no bytes may have no address, so that this is not `place`.
        const std::uint64_t offset = scalar_[word.ra] + number(word);
        if (offset > around_.payload.size()) return Stop::kPayload;
        const std::uint64_t there = std::min<std::uint64_t>(kLanes, (around_.payload.size() - offset) / bytes);
        const auto left = around_.payload.subspan(offset);
        for (std::size_t i = 0; i < there; ++i) lanes_[word.rd][i] = read(left.data() + i * bytes, bytes);
        return Stop::kNone;
      }
      case Op::kStreamout: {
        const std::uint64_t count = std::min<std::uint64_t>(kLanes, second(word));
        for (std::uint32_t i = 0; i < count; ++i) {
          if (!write(lanes_[word.ra][i], bytes)) return Stop::kOutput;
        }
        return Stop::kNone;
      }
      case Op::kSpvaccVx:
      case Op::kSpvaccVv:
      case Op::kSpvaccXv:
        return accumulate(word);
      default:
        break;
    }
    const Lanes a = lanes_[word.ra];
    Lanes b{};
    if (word.immediate) {
      b.fill(number(word));
    } else {
      b = lanes_[rb_of(word)];
    }
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      if (divides(word.op) && is_zero(b[i], word.element)) return Stop::kDivide;
      lanes_[word.rd][i] = evaluate(word.op, word.element, word.aux, a[i], b[i]);
    }
    return Stop::kNone;
  }

  /// spvacc: lane by lane, so that an index that comes twice counts twice. Indexes are the low 32 bits of lanes.
  Stop accumulate(const Instruction& word) {
    const bool into_scalar = word.op == Op::kSpvaccXv;
    const Lanes index = lanes_[into_scalar ? word.ra : word.rd];
    const std::uint64_t table = scalar_[into_scalar ? rb_of(word) : word.ra];
    const std::uint64_t limit = scalar_[rc_of(word)];
    const std::uint32_t bytes = bytes_of(word.element);
    const bool narrow = bytes == 2;  // fp16 and bf16 are added in fp32, and rounded when they are stored
    const std::uint64_t size = around_.memory.size();
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      const std::uint64_t which = index[i] & 0xffffffffU;
      if (which >= limit) continue;
      const std::uint64_t offset = which * bytes;
      if (bytes > size || table > size - bytes || offset > size - bytes - table) return Stop::kMemory;
      std::byte* const place = around_.memory.data() + table + offset;
      std::uint64_t entry = read(place, bytes);
      if (narrow) entry = compute::converted(Op::kConvert, Element::kFp32, word.element, entry);
      const Element carrier = narrow ? Element::kFp32 : word.element;
      if (into_scalar) {
        scalar_[word.rd] = evaluate(Op::kAdd, carrier, 0, scalar_[word.rd], entry);
        continue;
      }
      const std::uint64_t value = word.op == Op::kSpvaccVx ? scalar_[rb_of(word)] : lanes_[rb_of(word)][i];
      entry = evaluate(Op::kAdd, carrier, 0, entry, value);
      if (narrow) entry = compute::converted(Op::kConvert, word.element, Element::kFp32, entry);
      std::memcpy(place, &entry, bytes);
    }
    return Stop::kNone;
  }

  const Program& program_;
  const Surroundings& around_;
  std::uint64_t budget_;
  std::uint64_t written_ = 0;
  std::array<std::uint64_t, kScalarRegisters> scalar_{};
  std::array<std::uint32_t, kMostLoops> rounds_{};
  std::array<Lanes, kVectorRegisters> lanes_{};
};

inline Outcome run(const Program& program, Function function, const Surroundings& surroundings,
                   std::uint64_t budget) noexcept {
  const std::uint32_t entry = program.entries[static_cast<std::size_t>(function)];
  if (entry == kNoFunction) return {};
  return Machine(program, surroundings, budget).run(entry);
}

}  // namespace unisono::handler::simple
