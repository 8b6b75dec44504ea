#include "engine/windowed_run.hpp"

#include <algorithm>

namespace unisono::cclo {

void WindowedRun::start(LanePorts& ports, const Frame& frame) {
  ports_ = &ports;
  frame_ = frame;
  first_ = 0;
  complete_.fill(false);
  done_.fill(0);
  sent_.assign(ports.size(), 0);
  taken_.assign(ports.size(), 0);
}

bool WindowedRun::ready(std::uint32_t move) const {
  const WindowedMove& record = frame_.program->moves[move];
  for (std::uint32_t bits = record.dependencies; bits != 0; bits &= bits - 1) {
    const auto distance = static_cast<std::uint32_t>(__builtin_ctz(bits)) + 1;
    if (!complete(move - distance)) return false;
  }
  const std::uint64_t end = std::min(record.bytes, done_[move % kInFlight] + ports_->segment_of(record));
  for (const std::uint8_t distance : record.follows) {
    if (distance == 0 || complete(move - distance)) continue;
    if (done_[(move - distance) % kInFlight] < end) return false;
  }
  return has_turn(record);
}

/// The messages of a pair go one after the other.
bool WindowedRun::has_turn(const WindowedMove& move) const {
  const LoweredProgram& program = *frame_.program;
  for (std::uint32_t i = move.from.begin; i < move.from.begin + move.from.count; ++i) {
    if (taken_[program.ranks[i]] != program.ordinals[i]) return false;
  }
  for (std::uint32_t i = move.forward.begin; i < move.forward.begin + move.forward.count; ++i) {
    if (sent_[program.ranks[i]] != program.ordinals[i]) return false;
  }
  return true;
}

void WindowedRun::complete_move(std::uint32_t move) {
  const LoweredProgram& program = *frame_.program;
  const WindowedMove& record = program.moves[move];
  for (std::uint32_t i = 0; i < record.from.count; ++i) ++taken_[program.ranks[record.from.begin + i]];
  for (std::uint32_t i = 0; i < record.forward.count; ++i) ++sent_[program.ranks[record.forward.begin + i]];
  complete_[move % kInFlight] = true;
}

bool WindowedRun::step() {
  const auto& moves = frame_.program->moves;
  const auto count = static_cast<std::uint32_t>(moves.size());
  bool any = false;
  for (std::uint32_t n = first_; n < std::min(count, first_ + kInFlight); ++n) {
    if (complete_[n % kInFlight] || !ready(n)) continue;
    std::uint64_t& done = done_[n % kInFlight];
    const WindowedMove& move = moves[n];
    const bool nothing = move.bytes == 0 && move.from.count == 0 && move.forward.count == 0;
    if (!nothing && !ports_->advance(move, frame_, done)) continue;
    any = true;
    if (nothing || LanePorts::finished(move, done)) complete_move(n);
  }
  while (first_ < count && complete_[first_ % kInFlight]) {
    complete_[first_ % kInFlight] = false;
    done_[first_ % kInFlight] = 0;
    ++first_;
  }
  return any;
}

}  // namespace unisono::cclo
