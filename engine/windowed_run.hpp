// Runs the windowed form of a program over lanes: all moves of the window at the same time, segment by segment.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/lane_ports.hpp"

namespace unisono::cclo {

/// One run of one program; used again for the next. Never blocks. Not thread-safe.
class WindowedRun {
 public:
  /// `ports` and what `frame` refers to must outlive the run.
  void start(LanePorts& ports, const Frame& frame);
  /// Does what can be done now; false if nothing could. Throws LaneFault.
  bool step();
  bool finished() const { return first_ == frame_.program->moves.size(); }
  /// Calls `use(rank)` for every rank that a move of the window waits for a message of, or for room to send to. Ranks
  /// that have done their part are not among them: they may have left the job.
  template <class Use>
  void for_each_awaited(Use&& use) const {
    const auto& moves = frame_.program->moves;
    for (std::uint32_t n = first_; n < moves.size() && n < first_ + kInFlight; ++n) {
      if (complete(n) || !ready(n)) continue;
      ports_->for_each_missing(moves[n], *frame_.program, done_[n % kInFlight], use);
    }
  }

 private:
  static constexpr auto kInFlight = static_cast<std::uint32_t>(kWindow);

  bool complete(std::uint32_t move) const { return move < first_ || complete_[move % kInFlight]; }
  bool ready(std::uint32_t move) const;
  bool has_turn(const WindowedMove& move) const;
  void complete_move(std::uint32_t move);

  LanePorts* ports_ = nullptr;
  Frame frame_;
  std::uint32_t first_ = 0;  ///< moves before it have completed
  std::array<bool, kInFlight> complete_{};
  std::array<std::uint64_t, kInFlight> done_{};  ///< bytes
  std::vector<std::uint32_t> sent_, taken_;      ///< messages finished, by rank
};

}  // namespace unisono::cclo
