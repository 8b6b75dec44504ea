#include "driver/callbacks.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"
#include "driver/interface.hpp"

namespace unisono::driver {

void Callbacks::run(std::function<void()> work) {
  Callbacks& own = mine();
  own.due_.push_back(std::move(work));
  if ((inside() & kCallback) != 0) return;
  inside() |= kCallback;
  while (!own.due_.empty()) {
    for (const auto& each : std::exchange(own.due_, {})) each();
  }
  inside() &= static_cast<std::uint8_t>(~kCallback);
}

void Callbacks::run_hook(void (*hook)(void* context), void* context) {
  // The call that waits may have a sentence of its own to tell.
  std::string before;
  before.swap(last_error());
  inside() |= kHook;
  hook(context);
  inside() &= static_cast<std::uint8_t>(~kHook);
  before.swap(last_error());
}

void Callbacks::refuse(const char* function) {
  if (!running()) return;
  const bool callback = (inside() & kCallback) != 0;
  throw Error(ErrorCode::kInvalidArgument,
              std::string(function) + " was called in " +
                  (callback ? "a callback of a completed call (unisono_on_complete)"
                            : "the hook of waits, that is, in the function of unisono_set_wait_hook") +
                  "; it may wait for other ranks, and so is not allowed there. Start calls, or test requests");
}

}  // namespace unisono::driver
