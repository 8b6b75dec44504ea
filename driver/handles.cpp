#include "driver/handles.hpp"

#include <pthread.h>

namespace unisono::driver {

namespace {

std::atomic<std::uint64_t> generation{0};

// The kernel runs it in the child, in the thread that called fork, before fork returns there.
const int kRegistered = pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

std::uint64_t fork_generation() noexcept {
  (void)kRegistered;
  return generation.load(std::memory_order_relaxed);
}

}  // namespace unisono::driver
