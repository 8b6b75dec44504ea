// How a PE waits for its own memory to change.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace unisono::shmem {

/// One wait. It polls, then lets others run, then naps. Meanwhile it looks after the peers, and after the deadline.
class Patience {
 public:
  explicit Patience(const char* operation) : operation_(operation) {}

  /// Between two looks at the memory. Throws Failure if a PE has died or the deadline has passed.
  void pause() {
    if (++turns_ < kSpins && alone()) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      return;
    }
    pause_longer();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kSpins = 2000;

  /// Whether each PE of this host has a core.
  static bool alone();
  void pause_longer();
  /// Seconds since the first longer pause.
  double waited() const;

  const char* operation_;
  std::uint64_t turns_ = 0;
  Clock::time_point begin_{};
  Clock::time_point look_{};
  double deadline_ = 0;
};

/// A function of this thread that waits ask a hundred times a second; an answer other than 0 ends the wait, by a
/// Failure. Null: none.
using Interrupt = int (*)(void* context);
void set_interrupt(Interrupt wants_to_stop);

/// Looks after the peers. Throws Failure.
void look_after_peers(const char* operation);

/// Does so now and then: for functions that programs call in loops of their own.
inline void glance(const char* operation) {
  static std::atomic<std::uint32_t> calls{0};
  constexpr std::uint32_t kEvery = 4096;
  const std::uint32_t now = calls.load(std::memory_order_relaxed) + 1;  // threads may lose one
  calls.store(now, std::memory_order_relaxed);
  if (now % kEvery == 0) [[unlikely]]
    look_after_peers(operation);
}

}  // namespace unisono::shmem
