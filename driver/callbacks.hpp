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
  static bool running() { return inside(); }
  /// Throws Error(kInvalidArgument) inside a callback: `function` would, or might, wait for other ranks.
  static void refuse(const char* function);

 private:
  /// By itself, because calls that take a hundred nanoseconds ask for it.
  static bool& inside() {
    static constinit thread_local bool value = false;
    return value;
  }
  static Callbacks& mine() {
    thread_local Callbacks callbacks;
    return callbacks;
  }

  std::vector<std::function<void()>> due_;
};

}  // namespace unisono::driver
