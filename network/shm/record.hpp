// What stands in a ring: records of one 64-byte header and its payload, each at a multiple of 64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "network/shm/segment.hpp"

namespace unisono::shm {

/// First word of a header line that says "the next record is at the ring's begin". No header starts
/// with it, for its magic is another.
inline constexpr std::uint64_t kWrapMark = ~std::uint64_t{0};

/// Bytes a message of `payload` bytes takes in a ring.
constexpr std::uint64_t record_bytes(std::uint64_t payload) {
  return kLineBytes + (payload + kLineBytes - 1) / kLineBytes * kLineBytes;
}

/// Thrown by a ring that finds the impossible in shared memory; the network adds whose ring it is.
struct RingFault {
  std::string text;
};

}  // namespace unisono::shm
