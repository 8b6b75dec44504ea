#include "driver/callbacks.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"

namespace unisono::driver {

void Callbacks::run(std::function<void()> work) {
  Callbacks& own = mine();
  own.due_.push_back(std::move(work));
  if (inside()) return;
  inside() = true;
  while (!own.due_.empty()) {
    for (const auto& each : std::exchange(own.due_, {})) each();
  }
  inside() = false;
}

void Callbacks::refuse(const char* function) {
  if (!running()) return;
  throw Error(ErrorCode::kInvalidArgument,
              std::string(function) +
                  " was called in a callback of unisono_on_complete; it may wait for "
                  "other ranks, and so is not allowed there. Start calls, or test requests");
}

}  // namespace unisono::driver
