// Letting others have the core before a thread sleeps.
#pragma once

#include <chrono>
#include <thread>

namespace unisono::slots {

/// For a thread that waits for what others send, perhaps on the same core: while they run, more of it comes, and the
/// thread then takes all at once. Whoever computes and never waits does not give the core back before its time is over,
/// which is milliseconds: then, for a while, it is better to sleep, for a thread that is woken goes before those.
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
  /// Others had the core from `before` to `after`.
  void note(Time before, Time after) {
    if (after - before > kTooLong) sleeps_until_ = after + kForAWhile;
  }

 private:
  static constexpr std::chrono::milliseconds kTooLong{1};
  static constexpr std::chrono::milliseconds kForAWhile{100};
  Time sleeps_until_{};
};

}  // namespace unisono::slots
