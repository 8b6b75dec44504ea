#include "switch/endpoint/carried_call.hpp"

#include "core/arithmetic.hpp"
#include "core/text.hpp"
#include "switch/endpoint/carried_communicator.hpp"

namespace unisono::slots {

const char* CarriedCall::name() const { return communicator_ == nullptr ? "a switch" : communicator_->title().c_str(); }

void CarriedCall::begin() {
  if (communicator_ == nullptr || state != State::kQueued) return;
  state = State::kReady;
  communicator_->pump(std::chrono::steady_clock::now());
}

bool CarriedCall::ended(ErrorCode& of, std::string& words) {
  if (communicator_ != nullptr && state == State::kCarried && communicator_->finished(*this)) state = State::kDone;
  if (state == State::kFailed) {
    of = code;
    words = sentence;
    return true;
  }
  if (state == State::kDone && call.func == Func::kAvg && !divided_) divide();
  return state == State::kDone;
}

/// A mean is the sum, divided once by the number of ranks, where the result is: with the bits that ranks give to the
/// same sum, and that all of them have.
void CarriedCall::divide() {
  divided_ = true;
  if (call.collective == Collective::kReduce && call.root != call.rank) return;
  mean(call.dtype, dst, dst, call.count, call.size);
}

void CarriedCall::fail(ErrorCode of, std::string words) {
  if (state == State::kDone || state == State::kFailed) return;
  state = State::kFailed;
  code = of;
  sentence = std::move(words);
}

std::vector<std::uint32_t> CarriedCall::awaits() const {
  std::vector<std::uint32_t> ranks;
  if (communicator_ == nullptr || state != State::kCarried) return ranks;
  for (const CarriedPart& part : parts) {
    const auto order = communicator_->link(part.pool).awaited_still(std::chrono::steady_clock::now());
    if (order) ranks.push_back(communicator_->rank_of(part.pool, *order));
  }
  return ranks;
}

std::string CarriedCall::waits() const {
  if (communicator_ == nullptr) return {};
  switch (state) {
    case State::kQueued:
    case State::kReady:
      return "it waits for calls before it on this communicator, which " + communicator_->title() + " carries";
    case State::kByRanks:
      return communicator_->title() + " was given up, and the ranks finish the call among themselves";
    default:
      break;
  }
  if (state == State::kCarried) {
    for (const CarriedPart& part : parts) {
      const Link& link = communicator_->link(part.pool);
      const std::optional<std::uint32_t> order = link.window.awaited();
      if (!order || *order == kEveryone) continue;
      const std::uint32_t rank = communicator_->rank_of(part.pool, *order);
      if (link.window.waits_above()) {
        return formatted("{} waits for the switch above it, and that for rank {} or others below the same switch",
                         link.window.peer(), rank);
      }
      return formatted("{} waits for rank {}", link.window.peer(), rank);
    }
  }
  return "it waits for " + communicator_->title();
}

void CarriedCall::leave() {
  if (communicator_ != nullptr) communicator_->left(*this);
  communicator_ = nullptr;
  if (state != State::kDone) state = State::kFailed;  // what still comes of it is not written
}

}  // namespace unisono::slots
