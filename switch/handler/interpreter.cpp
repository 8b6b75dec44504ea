#include "switch/handler/interpreter.hpp"

#include <algorithm>

#include "switch/handler/step.hpp"

namespace unisono::handler {
namespace {

/// Instructions that go on by themselves. Where each of them is a call, so many calls stand on the stack.
constexpr std::uint64_t kBurst = 256;

Step step_of(const Instruction& word, std::uint32_t at) {
  const StepTable& table = word.vector ? kVectorSteps : kScalarSteps;
  Step step;
  step.does = table[index_of(word.op, word.element, variant_of(word))];
  step.number = static_cast<std::int32_t>(word.imm);
  if (word.op == Op::kJump || word.op == Op::kBranch || word.op == Op::kAgain) step.number -= at;
  step.rd = word.rd;
  step.ra = word.ra;
  step.rb = static_cast<std::uint8_t>(rb_of(word));
  step.rc = static_cast<std::uint8_t>(rc_of(word));
  step.aux = word.aux;
  return step;
}

}  // namespace

Code::Code(const Program& program) : entries_(program.entries) {
  steps_.reserve(program.words.size());
  for (const Instruction& word : program.words) {
    steps_.push_back(step_of(word, static_cast<std::uint32_t>(steps_.size())));
  }
}

Outcome Code::run(Function function, const Surroundings& surroundings, std::uint64_t budget) const noexcept {
  const std::uint32_t entry = entries_[static_cast<std::size_t>(function)];
  if (entry == kNoFunction) return {};
  State state(surroundings);
  state.stop = Stop::kBudget;
  const Step* at = steps_.data() + entry;
  std::uint64_t left = budget;
  while (left != 0) {
    const std::uint64_t burst = std::min(left, kBurst);
    const Step* const next = at->does(state, at, burst - 1);
    if (next == nullptr) {
      left -= burst - state.fuel;
      at = state.at;
      break;
    }
    left -= burst;
    at = next;
  }
  Outcome outcome;
  outcome.stop = state.stop;
  outcome.verdict = state.verdict;
  outcome.word = static_cast<std::uint32_t>(at - steps_.data());
  outcome.executed = budget - left;
  outcome.output_bytes = state.written;
  return outcome;
}

}  // namespace unisono::handler
