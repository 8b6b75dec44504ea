// The helper thread of a process: makes progress on calls in flight while the program computes, and tells descriptors
// that there is progress to make.
//
// A process has one, whatever the number of its contexts. It sleeps on the words of all of them at once, which senders
// change as they wake who sleeps there (network/shm/parking.hpp).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace unisono {
class Engine;
}

namespace unisono::driver {

/// A context's place with the helper thread, which runs as long as there is a place. Thread-safe.
class Offload {
 public:
  /// The engine must outlive it. Throws Error(kCapacity) if the system refuses the thread.
  explicit Offload(Engine& engine);
  /// Returns when the thread has left the engine; ends it if this was the last place. Not on the helper thread.
  ~Offload();
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

  static constexpr std::chrono::steady_clock::time_point kAtOnce = std::chrono::steady_clock::time_point::min();
  /// There are calls to make progress on, or messages that may have to be sent again: the thread does so until there
  /// are none, from `due` on or some milliseconds later. If it will look by then anyway it is left alone, which costs
  /// nothing.
  void wake(std::chrono::steady_clock::time_point due = kAtOnce);

  /// A descriptor that is readable when there may be progress to make, since it was armed last; made as it is first
  /// asked for, and closed with this. Throws Error(kUnsupported) for engines that cannot tell, Error(kCapacity).
  int descriptor();
  /// Makes progress, and arms the descriptor, which is then no longer readable. Whether something was done: then there
  /// may be more, nothing is armed, and the program should look at its requests before it sleeps. Throws as
  /// `descriptor` does.
  bool arm();

  struct Place;

 private:
  const std::shared_ptr<Place> place_;
};

}  // namespace unisono::driver
