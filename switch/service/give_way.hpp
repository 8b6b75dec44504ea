// Letting others have the core before a thread sleeps.
#pragma once

#include <chrono>
#include <thread>

namespace unisono::slots {

/// For a thread that waits for what others send, perhaps on the same core: while they run, more of it comes, and the
/// thread then takes all at once. It is of no use, and for a while the thread had better sleep at once,
/// - beside somebody who computes and never waits, and so keeps the core until his time is over, which is milliseconds:
///   a thread that is woken goes before him;
/// - if nobody runs: the core is idle, or the system lets others of this thread's session run only (autogroups).
class GiveWay {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /// Lets others run. False if that is of no use now, and nobody has run.
  bool operator()() {
    const Time before = Clock::now();
    if (!is_of_use(before)) return false;
    std::this_thread::yield();
    note(before, Clock::now());
    return true;
  }

  bool is_of_use(Time now) const { return now >= sleeps_until_; }
  /// Others had the core from `before` to `after`, if there were any.
  void note(Time before, Time after) {
    alone_ = after - before < kNobody ? alone_ + 1 : 0;
    if (after - before > kTooLong) {
      sleeps_until_ = after + kForLong;
    } else if (alone_ == kAlone) {
      alone_ = 0;
      sleeps_until_ = after + kForAWhile;
    }
  }

 private:
  static constexpr std::chrono::nanoseconds kNobody{1500};
  static constexpr std::chrono::milliseconds kTooLong{1};
  static constexpr std::chrono::milliseconds kForLong{100};
  static constexpr std::chrono::milliseconds kForAWhile{5};
  static constexpr int kAlone = 8;  ///< times in a row without anybody
  Time sleeps_until_{};
  int alone_ = 0;
};

}  // namespace unisono::slots
