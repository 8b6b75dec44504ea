// Objects of which a process has one, and a child of fork another one.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/process.hpp"

namespace unisono {

/// The one object of a class in this process, made when it is first asked for. It lives for ever, so that it can be
/// asked at any time. A child of fork gets a new one: the parent's threads may have held the locks of its predecessor,
/// which is left alone. Thread-safe. T befriends it where its constructor and destructor are private.
template <class T>
class PerProcess {
 public:
  static T& instance() {
    static std::atomic<Made*> current{nullptr};
    Made* live = current.load(std::memory_order_acquire);
    while (live == nullptr || live->generation != fork_generation()) {
      auto* made = new Made;
      if (current.compare_exchange_strong(live, made, std::memory_order_acq_rel)) return made->object;
      delete made;
    }
    return live->object;
  }

 private:
  struct Made {
    const std::uint32_t generation = fork_generation();
    T object;
  };
};

}  // namespace unisono
