// How much memory of a rank a call uses: docs/model.md, rules 17 and 18, written once. Freestanding.
#pragma once

#include <array>
#include <cstddef>
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

/// Whether only the root of a collective acts on `in_place`: the others use the same memory in both forms, and need not
/// know which it is (reduce, gather, scatter, gatherv, scatterv).
constexpr bool in_place_at_root(Collective collective) {
  constexpr auto kCollectives = [] {
    std::uint32_t bits = 0;
    for (const Collective each : kAllCollective) {
      const CollectiveFacts facts = facts_of(each);
      if (facts.kind != CallKind::kCollective || !facts.rooted || !facts.in_place) continue;
      const Uses plain = uses_of(each, false, false);
      const Uses own_place = uses_of(each, false, true);
      const bool same = plain.src == own_place.src && plain.dst == own_place.dst && plain.reads == own_place.reads &&
                        plain.writes == own_place.writes;
      if (same) bits |= std::uint32_t{1} << static_cast<std::uint32_t>(each);
    }
    return bits;
  }();
  return (kCollectives >> (static_cast<std::uint32_t>(collective) & 31U) & 1U) != 0;
}

/// Whether the root of a collective knows the counts of all ranks, and each other rank need know no more than its own
/// (gatherv, scatterv).
constexpr bool counts_at_root(Collective collective) {
  constexpr auto kCollectives = [] {
    std::uint32_t bits = 0;
    for (const Collective each : kAllCollective) {
      const CollectiveFacts facts = facts_of(each);
      if (facts.kind == CallKind::kCollective && facts.rooted && facts.vectors) {
        bits |= std::uint32_t{1} << static_cast<std::uint32_t>(each);
      }
    }
    return bits;
  }();
  return (kCollectives >> (static_cast<std::uint32_t>(collective) & 31U) & 1U) != 0;
}

/// What `call` uses on `call.rank`.
constexpr Uses uses_of(const Call& call) { return uses_of(call.collective, call.rank == call.root, call.in_place); }

namespace footprint_detail {

/// src and dst of uses_of, by collective, root and in place: a table is less code than all cases, which a
/// microcontroller fetches anew for each call that it has not seen.
inline constexpr auto kTable = [] {
  std::array<std::array<Extent, 2>, std::size_t{32} * 4> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Uses uses = uses_of(static_cast<Collective>(i / 4), i % 4 / 2 != 0, i % 2 != 0);
    table[i] = {uses.src, uses.dst};
  }
  return table;
}();

}  // namespace footprint_detail

/// The footprint of `call` on `call.rank`. A user's program has none of its own: its buffers are bound as given.
constexpr Footprint footprint_of(const Call& call, const VectorExtents& blocks = {}) {
  const std::size_t at = static_cast<std::size_t>(call.collective) * 4 + (call.rank == call.root ? 2 : 0) +
                         static_cast<std::size_t>(call.in_place);
  if (at >= footprint_detail::kTable.size()) return {};
  // By Extent. A block's place among others is no footprint.
  const std::array<std::uint64_t, 7> elements{0,           call.count, all_blocks(call.count, call.size), blocks.own, 0,
                                              blocks.send, blocks.recv};
  const auto& [src, dst] = footprint_detail::kTable[at];
  return {elements[static_cast<std::size_t>(src)], elements[static_cast<std::size_t>(dst)]};
}

}  // namespace unisono
