// How much memory of a rank a call uses: docs/model.md, rules 17 and 18, written once. Freestanding.
#pragma once

#include <cstdint>

#include "core/call.hpp"
#include "core/generated/collectives.hpp"

namespace unisono {

/// What the counts of a v-collective come to on one rank, in elements. Unused parts are 0.
struct VectorExtents {
  std::uint64_t own = 0;   ///< this rank's own block (gatherv, scatterv, allgatherv, reduce_scatterv)
  std::uint64_t send = 0;  ///< end of the last block that is sent, in its layout
  std::uint64_t recv = 0;  ///< end of the last block of the receive counts, in its layout
};

/// Elements that a call binds on a rank; 0 where it binds nothing.
struct Footprint {
  std::uint64_t src = 0;
  std::uint64_t dst = 0;
  friend constexpr bool operator==(const Footprint&, const Footprint&) = default;
};

/// More elements than any buffer has; a product that would be larger is cut to it.
inline constexpr std::uint64_t kBeyondAnyBuffer = std::uint64_t{1} << 62U;

/// n * size, cut to kBeyondAnyBuffer; by halves, for a machine of 32 bits divides slowly.
constexpr std::uint64_t all_blocks(std::uint64_t n, std::uint32_t size) {
  const std::uint64_t low = (n & 0xffffffffU) * size;
  const std::uint64_t high = (n >> 32U) * size + (low >> 32U);
  return high >= kBeyondAnyBuffer >> 32U ? kBeyondAnyBuffer : high << 32U | (low & 0xffffffffU);
}

/// Elements of a part of a buffer on `call.rank`.
constexpr std::uint64_t elements_of(Extent part, const Call& call, const VectorExtents& blocks = {}) {
  switch (part) {
    case Extent::kNothing:
      return 0;
    case Extent::kN:
      return call.count;
    case Extent::kAll:
      return all_blocks(call.count, call.size);
    case Extent::kBlock:
      return facts_of(call.collective).vectors ? blocks.own : call.count;
    case Extent::kOwn:
      return blocks.own;
    case Extent::kSent:
      return blocks.send;
    case Extent::kReceived:
      return blocks.recv;
  }
  return 0;
}

/// What `call` uses on `call.rank`.
constexpr Uses uses_of(const Call& call) { return uses_of(call.collective, call.rank == call.root, call.in_place); }

/// The footprint of `call` on `call.rank`. A user's program has none of its own: its buffers are bound as given.
constexpr Footprint footprint_of(const Call& call, const VectorExtents& blocks = {}) {
  const Uses uses = uses_of(call);
  return {elements_of(uses.src, call, blocks), elements_of(uses.dst, call, blocks)};
}

}  // namespace unisono
