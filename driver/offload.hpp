// The offload thread of a context: makes progress on calls in flight while the program computes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace unisono {
class Engine;
}

namespace unisono::driver {

/// A thread that drives an engine while calls are in flight, and sleeps while none is. Thread-safe.
class Offload {
 public:
  /// The engine must outlive it. Throws Error(kCapacity) if the system refuses a thread.
  explicit Offload(Engine& engine);
  /// Ends the thread, within one of its sleeps.
  ~Offload();
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

  /// There are calls to make progress on.
  void wake();

 private:
  void serve();

  Engine& engine_;
  std::mutex mutex_;
  std::condition_variable called_;
  bool wanted_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace unisono::driver
