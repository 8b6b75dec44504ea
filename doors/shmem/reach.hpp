// Symmetric memory, and where this process reaches it: what every put, get and atomic looks at first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace unisono::shmem {

/// A piece of symmetric memory: the same variables on every PE, each with values of its own.
struct Region {
  std::byte* begin = nullptr;     ///< this PE's
  std::uint64_t bytes = 0;        ///< 0: there is no such region
  std::vector<std::byte*> peers;  ///< by PE: its memory as this process sees it; null: it is on another host
};

/// The two regions, by the numbers that messages use.
enum : std::uint32_t { kHeapRegion = 0, kStaticsRegion = 1, kRegions = 2 };

/// Written as the job begins and ends; else only read.
struct Reach {
  Region regions[kRegions];
  int rank = -1;
  int size = 0;  ///< 0: there is no job
};
extern Reach reach;

/// A place on a PE.
struct Target {
  std::byte* here = nullptr;  ///< where this process stores and loads it; null: by messages
  std::uint32_t region = 0;
  std::uint64_t offset = 0;
};

/// Throws Failure that says what is wrong with an address or a PE.
[[noreturn]] void refuse(const char* operation, const void* address, std::uint64_t bytes, int pe);

/// The sentence of `refuse` on an address alone.
std::string describe_address(const void* address, std::uint64_t bytes);

/// Whether bytes are symmetric, and where.
inline bool locate(const void* address, std::uint64_t bytes, Target& target) {
  for (std::uint32_t number = 0; number < kRegions; ++number) {
    const Region& region = reach.regions[number];
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - region.begin);
    if (offset < region.bytes && bytes <= region.bytes - offset) [[likely]] {
      target.region = number;
      target.offset = offset;
      return true;
    }
  }
  return false;
}

/// Where this process stores and loads what another PE has at `address`; null if that is not so simple, or wrong.
inline std::byte* near(const void* address, std::uint64_t bytes, int pe) {
  if (static_cast<unsigned>(pe) >= static_cast<unsigned>(reach.size)) [[unlikely]]
    return nullptr;
  for (const Region& region : reach.regions) {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - region.begin);
    if (offset < region.bytes && bytes <= region.bytes - offset) [[likely]] {
      std::byte* const there = region.peers[static_cast<std::size_t>(pe)];
      return there == nullptr ? nullptr : there + offset;
    }
  }
  return nullptr;
}

/// Where `bytes` bytes at this PE's `address` are on another PE. Throws Failure if they are not symmetric, or there is
/// no such PE, or no job.
inline Target resolve(const char* operation, const void* address, std::uint64_t bytes, int pe) {
  Target target;
  if (static_cast<unsigned>(pe) >= static_cast<unsigned>(reach.size) || !locate(address, bytes, target)) [[unlikely]] {
    refuse(operation, address, bytes, pe);
  }
  std::byte* const there = reach.regions[target.region].peers[static_cast<std::size_t>(pe)];
  if (there != nullptr) [[likely]]
    target.here = there + target.offset;
  return target;
}

}  // namespace unisono::shmem
