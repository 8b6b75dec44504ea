// Threads that share out the same items again and again: the nodes of a cluster, once in each cycle.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace unisono::sim {

/// Processors that this process may run on.
unsigned usable_processors();

class Team {
 public:
  /// `threads` of them, counting the one that calls `run`; at most one per item, at least one. `work(item)` is called
  /// for different items at the same time.
  Team(std::uint32_t items, unsigned threads, std::function<void(std::uint32_t)> work);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  unsigned threads() const { return static_cast<unsigned>(others_.size()) + 1; }

  /// Works on each item once, and returns when all are done. What was written before is seen by the work, and what the
  /// work wrote is seen after. Throws what the work on the lowest item threw, of those that threw.
  void run();

 private:
  struct alignas(64) Item {
    std::atomic<std::uint32_t> round{0};  ///< in which it was claimed last
    std::exception_ptr error;
  };

  /// Works on whatever is unclaimed, beginning with the items that are nearest to this thread's cache.
  void take_part(unsigned thread, std::uint32_t round);
  void serve(unsigned thread);

  const std::uint32_t items_;
  const std::function<void(std::uint32_t)> work_;
  std::unique_ptr<Item[]> state_;
  // Every round begins by a new number here. A thread that comes late finds nothing to claim.
  alignas(64) std::atomic<std::uint32_t> round_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};  ///< items of this round
  std::atomic<bool> failed_{false}, ending_{false};
  std::vector<std::thread> others_;
};

}  // namespace unisono::sim
