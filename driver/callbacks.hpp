// Callbacks of completed calls: which thread runs them, and what they may not do.
#pragma once

#include <functional>
#include <vector>

namespace unisono::driver {

/// The callbacks of one thread. One runs at a time: what becomes due while it runs, because it makes progress or asks
/// for a callback of a call that has ended already, runs after it, so that chains of callbacks need no stack.
class Callbacks {
 public:
  /// Runs `work` now, or after the callback that this thread is in.
  static void run(std::function<void()> work);
  /// Whether this thread is inside a callback.
  static bool running() { return running_; }
  /// Throws Error(kInvalidArgument) inside a callback: `function` would, or might, wait for other ranks.
  static void refuse(const char* function);

 private:
  static Callbacks& mine() {
    thread_local Callbacks callbacks;
    return callbacks;
  }

  static inline constinit thread_local bool running_ = false;  // by itself, for calls ask for it that take 100 ns
  std::vector<std::function<void()>> due_;
};

}  // namespace unisono::driver
