// Looks after collectives in flight that no thread of the program looks after.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace unisono::mpi {

/// A thread that wakes twice a millisecond while it is needed, and for a while after, and else sleeps.
class Keeper {
 public:
  /// `take_over` is called by the thread where nothing was looked after since it woke before; it returns whether
  /// something is in flight.
  explicit Keeper(std::function<bool(bool neglected)> take_over) : take_over_(std::move(take_over)) {}
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper();

  /// Something is in flight now. If the system has no thread left, nothing is kept.
  void wake();
  /// Somebody looks after what is in flight.
  void looked() { looks_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void run();

  std::function<bool(bool)> take_over_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool begun_ = false;
  bool idle_ = true;
  bool ends_ = false;
  std::atomic<std::uint64_t> looks_{0};
  std::thread thread_;
};

}  // namespace unisono::mpi
