// How much memory of a rank a call uses: docs/model.md, rules 17 and 18, written once. Freestanding.
#pragma once

#include <cstdint>

#include "core/call.hpp"

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

/// The footprint of `call` on `call.rank`. A user's program has none of its own: its buffers are bound as given.
constexpr Footprint footprint_of(const Call& call, const VectorExtents& blocks = {}) {
  const std::uint64_t n = call.count;
  const std::uint64_t all = all_blocks(n, call.size);
  const bool root = call.rank == call.root;
  const bool here = call.in_place;
  switch (call.collective) {
    case Collective::kNop:
    case Collective::kBarrier:
    case Collective::kProgram:
      return {0, 0};
    case Collective::kCopy:
    case Collective::kCombine:
      return {n, n};
    case Collective::kSend:
    case Collective::kPut:
      return {n, 0};
    case Collective::kRecv:
    case Collective::kGet:
    case Collective::kBcast:
      return {0, n};
    case Collective::kReduce:
      return {here && root ? 0 : n, root ? n : 0};
    case Collective::kAllreduce:
    case Collective::kScan:
    case Collective::kExscan:
      return {here ? 0 : n, n};
    case Collective::kReduceScatter:
      return {here ? 0 : all, here ? all : n};
    case Collective::kAllgather:
      return {here ? 0 : n, all};
    case Collective::kGather:
      return {here && root ? 0 : n, root ? all : 0};
    case Collective::kScatter:
      return {root ? all : 0, here && root ? 0 : n};
    case Collective::kAlltoall:
      return {here ? 0 : all, all};
    case Collective::kGatherv:
      return {here && root ? 0 : blocks.own, root ? blocks.recv : 0};
    case Collective::kScatterv:
      return {root ? blocks.send : 0, here && root ? 0 : blocks.own};
    case Collective::kAllgatherv:
      return {here ? 0 : blocks.own, blocks.recv};
    case Collective::kAlltoallv:
      return {here ? 0 : blocks.send, blocks.recv};
    case Collective::kReduceScatterv:
      return {here ? 0 : blocks.recv, here ? blocks.recv : blocks.own};
  }
  return {0, 0};
}

}  // namespace unisono
