// What strangers have sent to an endpoint, counted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace unisono {

/// Counts what one network of an endpoint has refused, and says when that is worth a line in the log. A flood is told
/// of once a second, as its sender must not fill disks.
class RefusalCount {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kBetweenLines{1};

  /// Counts one more.
  void add() {
    ++count_;
    if (shown_ != nullptr) shown_->fetch_add(1, std::memory_order_relaxed);
  }
  /// Whether a line may be written now. If so, the next one may come `kBetweenLines` later.
  bool may_log(Clock::time_point now) {
    if (logged_ && now < next_line_) return false;
    logged_ = true;
    next_line_ = now + kBetweenLines;
    return true;
  }
  std::uint64_t count() const { return count_; }
  /// Adds to `word` what was counted, and from now on whatever is. Several networks may add to one word, which lives
  /// longer than they do.
  void show(std::atomic<std::uint64_t>& word) {
    shown_ = &word;
    word.fetch_add(count_, std::memory_order_relaxed);
  }

 private:
  std::uint64_t count_ = 0;
  std::atomic<std::uint64_t>* shown_ = nullptr;
  bool logged_ = false;
  Clock::time_point next_line_{};
};

}  // namespace unisono
