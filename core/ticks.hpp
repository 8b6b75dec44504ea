// A counter of the processor that goes on all the time. Reading it is no system call.
#pragma once

#include <chrono>
#include <cstdint>

namespace unisono {

/// A value of the counter that is about as old as its difference to a later one. Threads on different cores may see it
/// go back a little: the difference is then huge.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// A millisecond, about.
#if defined(__x86_64__)
inline constexpr std::uint64_t kMillisecondTicks = std::uint64_t{1} << 22U;
#elif defined(__aarch64__)
inline constexpr std::uint64_t kMillisecondTicks = std::uint64_t{1} << 16U;
#else
inline constexpr std::uint64_t kMillisecondTicks = 1'000'000;
#endif

}  // namespace unisono
