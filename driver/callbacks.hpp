// Functions of the user that run inside this library, callbacks of completed calls and the hook of waits: which thread
// runs them, and what they may not do.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/lasting.hpp"
#include "core/thread_state.hpp"

namespace unisono::driver {

/// The callbacks of one thread. One runs at a time: what becomes due while it runs, because it makes progress or asks
/// for a callback of a call that has ended already, runs after it, so that chains of callbacks need no stack.
class Callbacks {
 public:
  /// Runs `work` now, or after the callback that this thread is in.
  static void run(std::function<void()> work);
  /// Runs the hook of waits.
  static void run_hook(void (*hook)(void* context), void* context);
  /// Whether this thread is inside a callback, or the hook.
  static bool running() { return inside() != 0; }
  /// Throws Error(kInvalidArgument) if this thread is inside one: `function` would, or might, wait for other ranks.
  static void refuse(const char* function);

 private:
  enum Place : std::uint8_t { kCallback = 1, kHook = 2 };
  /// Places, as bits.
  static std::uint8_t& inside() { return thread_state().callbacks; }
  static Callbacks& mine() { return lasting<Callbacks>(); }

  std::vector<std::function<void()>> due_;
};

}  // namespace unisono::driver
