// What a blocking call asks, now and then, while it waits: whether its caller wants it to give up.
#pragma once

#include <chrono>

namespace unisono::cclo {

/// Answers whether the blocking calls of a thread shall end. Called without any lock, by the thread that set it, at
/// most every `kInterval`.
struct Interrupt {
  int (*wants_to_stop)(void* context) = nullptr;
  void* context = nullptr;

  static constexpr std::chrono::milliseconds kInterval{50};

  /// This thread's.
  static Interrupt& current() {
    thread_local Interrupt interrupt;
    return interrupt;
  }
  /// Asks, if there is somebody to ask and it is time to.
  bool pending() {
    if (wants_to_stop == nullptr) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return false;
    next_ = now + kInterval;
    return wants_to_stop(context) != 0;
  }

 private:
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace unisono::cclo
