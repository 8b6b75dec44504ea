// Put, get and atomics on any PE: by the caller where it reaches the memory, else by messages.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "doors/shmem/atomics.hpp"
#include "doors/shmem/copy.hpp"
#include "doors/shmem/failure.hpp"
#include "doors/shmem/patience.hpp"
#include "doors/shmem/reach.hpp"

namespace unisono::shmem {

/// By messages, or not at all: they throw Failure if the place is not symmetric, or there is no such PE.
void put_far(const char* operation, void* dest, const void* source, std::uint64_t bytes, int pe);
void get_far(const char* operation, void* dest, const void* source, std::uint64_t bytes, int pe);
std::uint64_t atomic_far(const char* operation, Atomic what, std::uint32_t width, const Target& target, int pe,
                         std::uint64_t operand, std::uint64_t comparand, bool fetches);

/// Bytes of `count` elements. Throws Failure if that is more than any memory has.
inline std::uint64_t bytes_of(const char* operation, std::uint64_t count, std::uint64_t size) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 47U;
  if (count > kMost / size) [[unlikely]] {
    fail(operation, std::to_string(count) + " elements were given, which no memory has; a negative number?");
  }
  return count * size;
}

inline void put(const char* operation, void* dest, const void* source, std::uint64_t bytes, int pe) {
  if (std::byte* const there = near(dest, bytes, pe); there != nullptr) [[likely]]
    return copy(there, source, bytes);
  put_far(operation, dest, source, bytes, pe);
}

inline void get(const char* operation, void* dest, const void* source, std::uint64_t bytes, int pe) {
  glance(operation);
  if (const std::byte* const there = near(source, bytes, pe); there != nullptr) [[likely]] {
    return copy(dest, there, bytes);
  }
  get_far(operation, dest, source, bytes, pe);
}

/// Every dst_step-th element of `size` bytes gets every src_step-th.
template <class Access>
void strided(Access access, const char* operation, void* dest, const void* source, std::ptrdiff_t dst_step,
             std::ptrdiff_t src_step, std::uint64_t count, std::uint64_t size, int pe) {
  const std::uint64_t bytes = bytes_of(operation, count, size);
  if (dst_step < 1 || src_step < 1) {
    fail(operation, "steps of " + std::to_string(dst_step) + " and " + std::to_string(src_step) +
                        " were given; allowed are 1 and more");
  }
  if (dst_step == 1 && src_step == 1) return access(operation, dest, source, bytes, pe);
  const auto width = static_cast<std::ptrdiff_t>(size);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto n = static_cast<std::ptrdiff_t>(i);
    access(operation, static_cast<std::byte*>(dest) + n * dst_step * width,
           static_cast<const std::byte*>(source) + n * src_step * width, size, pe);
  }
}

/// On a word of T, which is an integer or a real number of 4 or 8 bytes. Returns what stood there before.
template <class T>
T atomic(const char* operation, Atomic what, const T* address, T operand, T comparand, int pe, bool fetches = true) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  glance(operation);
  const Target target = resolve(operation, address, sizeof(T), pe);
  if (target.offset % sizeof(T) != 0) [[unlikely]] {
    fail(operation, "the address is not at a multiple of the " + std::to_string(sizeof(T)) + " bytes of its type");
  }
  Word given = 0;
  Word expected = 0;
  std::memcpy(&given, &operand, sizeof(T));
  std::memcpy(&expected, &comparand, sizeof(T));
  const Word before =
      target.here != nullptr
          ? apply_to(what, reinterpret_cast<Word*>(target.here), given, expected)
          : static_cast<Word>(atomic_far(operation, what, sizeof(T), target, pe, given, expected, fetches));
  T result;
  std::memcpy(&result, &before, sizeof(T));
  return result;
}

enum class Signal : int { kSet = 1, kAdd = 2 };

/// A put, and after it an update of a signal word, which whoever sees it sees the put's bytes behind.
inline void put_signal(const char* operation, void* dest, const void* source, std::uint64_t bytes,
                       std::uint64_t* signal, std::uint64_t value, int how, int pe) {
  if (how != static_cast<int>(Signal::kSet) && how != static_cast<int>(Signal::kAdd)) {
    fail(operation, "a signal operation of " + std::to_string(how) +
                        " was given; allowed are SHMEM_SIGNAL_SET and "
                        "SHMEM_SIGNAL_ADD");
  }
  const Target target = resolve(operation, signal, sizeof *signal, pe);
  if (target.offset % sizeof *signal != 0) fail(operation, "the signal is not at a multiple of 8 bytes");
  put(operation, dest, source, bytes, pe);
  const Atomic what = how == static_cast<int>(Signal::kSet) ? Atomic::kSet : Atomic::kAdd;
  if (target.here != nullptr) {
    apply_to(what, reinterpret_cast<std::uint64_t*>(target.here), value, std::uint64_t{0});
  } else {
    atomic_far(operation, what, sizeof *signal, target, pe, value, 0, false);
  }
}

}  // namespace unisono::shmem
