// How the interpreter holds a program: a function for each instruction, chosen when the program is loaded by all that
// is known then, and the state that these functions work on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "switch/handler/evaluate.hpp"
#include "switch/handler/interpreter.hpp"

namespace unisono::handler {

using Lanes = std::array<std::uint64_t, kLanes>;

/// The state of one run. Registers are 0 at the beginning.
struct State {
  explicit State(const Surroundings& surroundings) : around(surroundings) {}

  std::array<std::uint64_t, kScalarRegisters> scalar{};
  std::array<std::uint32_t, kMostLoops> rounds{};
  alignas(64) std::array<Lanes, kVectorRegisters> lanes{};
  const Surroundings& around;
  std::uint64_t written = 0;
  Stop stop = Stop::kNone;
  std::uint32_t verdict = 0;
  const Step* at = nullptr;  ///< where it ended
  std::uint64_t fuel = 0;    ///< that was left then
};

/// Whether an instruction's last operand is a register or a number is known by its function.
inline std::uint64_t number_of(const Step& step) { return static_cast<std::uint64_t>(step.number); }

template <bool kNumber>
std::uint64_t second(const State& state, const Step& step) {
  return kNumber ? number_of(step) : state.scalar[step.rb];
}

/// A function ends here, because of `why`.
inline const Step* stopped(State& state, const Step* step, std::uint64_t fuel, Stop why) {
  state.stop = why;
  state.at = step;
  state.fuel = fuel;
  return nullptr;
}

/// Goes on with the next instruction, in its function. A compiler that optimises jumps there; one that does not calls
/// it, which is why fuel is bounded.
inline const Step* go_on(State& state, const Step* next, std::uint64_t fuel) {
  if (fuel == 0) [[unlikely]]
    return next;
  return next->does(state, next, fuel - 1);
}

/// Where `bytes` bytes at ra + imm begin in `in`, or null if they are not within it.
template <class Byte>
Byte* place(const State& state, const Step& step, std::span<Byte> in, std::uint64_t bytes) {
  const std::uint64_t offset = state.scalar[step.ra] + number_of(step);
  if (bytes > in.size() || offset > in.size() - bytes) return nullptr;
  return in.data() + offset;
}

/// An element in memory, little-endian.
template <std::uint32_t kBytes>
std::uint64_t read(const std::byte* from) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, kBytes);
  return value;
}

template <std::uint32_t kBytes>
bool write(State& state, std::uint64_t value) {
  if (state.around.output.size() - state.written < kBytes) return false;
  std::memcpy(state.around.output.data() + state.written, &value, kBytes);
  state.written += kBytes;
  return true;
}

constexpr bool divides(Op op) { return op >= Op::kDivUnsigned && op <= Op::kRemSigned; }

template <Element kElement>
constexpr bool is_zero(std::uint64_t value) {
  return value << (64U - 8U * bytes_of(kElement)) == 0;
}

/// Functions are made for each operation, element and variant: what a conversion is from, which branch it is, or
/// whether the second operand is a number.
inline constexpr std::size_t kVariants = 8;
inline constexpr std::size_t kOperations = 64;
using StepTable = std::array<Step::Does, kOperations * kAllElement.size() * kVariants>;

constexpr std::size_t index_of(Op op, Element element, std::size_t variant) {
  return (static_cast<std::size_t>(op) * kAllElement.size() + static_cast<std::size_t>(element)) * kVariants + variant;
}

constexpr bool is_convert(Op op) { return op >= Op::kSignExtend && op <= Op::kConvert; }

constexpr std::size_t variant_of(const Instruction& word) {
  if (is_convert(word.op) || word.op == Op::kBranch || word.op == Op::kAgain) return word.aux;
  return word.immediate ? 1 : 0;
}

constexpr bool has(Op op, Element element) {
  return is_known(op) && (types_of(op) >> static_cast<unsigned>(element) & 1U) != 0;
}

/// A table of what `Choose` has for each: `template <Op, Element, std::size_t kVariant> static constexpr Step::Does
/// step()`.
template <class Choose>
constexpr StepTable make_step_table() {
  return []<std::size_t... kIndexes>(std::index_sequence<kIndexes...>) {
    return StepTable{Choose::template step<static_cast<Op>(kIndexes / kVariants / kAllElement.size()),
                                           static_cast<Element>(kIndexes / kVariants % kAllElement.size()),
                                           kIndexes % kVariants>()...};
  }
  (std::make_index_sequence<std::tuple_size_v<StepTable>>());
}

extern const StepTable kScalarSteps;
extern const StepTable kVectorSteps;

}  // namespace unisono::handler
