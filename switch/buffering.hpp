// How much a switch keeps, and how much it must keep so that nobody waits for its memory.
//
// Two bounds, one from each side.
// - Least: ACiS (Haghi, 2023), eq. 3.1, min_buf_size = (m + (d + q) * L / T_clk) * Ph: what comes in at a port while
// the
//   slowest frame of a turn is still on its way through a tree of depth d. A pool with fewer bytes per child still
//   gives right results, but its members stand still while they wait for slots.
// - Most: members * payload for each version of each slot. No frame is ever stored beyond its own place, so this is
// also
//   what is allocated, at construction.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::slots {

/// The terms of eq. 3.1, in its letters.
struct LinkShape {
  std::uint32_t margin = 0;      ///< m: flow-control margin, phits
  std::uint32_t depth = 1;       ///< d: levels of switches from member to root
  std::uint32_t slack = 0;       ///< q: levels more, for other operations
  double latency_ns = 0;         ///< L: of a link, there and back
  double clock_ns = 0;           ///< T_clk: time of a phit
  std::uint32_t phit_bytes = 0;  ///< Ph
};

/// Eq. 3.1, bytes per child, rounded up to whole phits. Without a clock a link holds nothing.
constexpr std::uint64_t least_buffer_bytes(const LinkShape& link) {
  const double on_link = link.clock_ns > 0 ? link.latency_ns / link.clock_ns : 0;
  const double phits = link.margin + (link.depth + link.slack) * on_link;
  const auto whole = static_cast<std::uint64_t>(phits);
  return (whole + (static_cast<double>(whole) < phits ? 1 : 0)) * link.phit_bytes;
}

/// Bytes per child that slots hold at once: the version that gathers; the other one holds a result.
constexpr std::uint64_t buffer_bytes(std::uint32_t slots, std::uint32_t payload_bytes) {
  return std::uint64_t{slots} * payload_bytes;
}

/// The least number of slots, a power of two, that satisfies eq. 3.1 with frames of such a payload; 2^31 if none does.
constexpr std::uint32_t least_slots(const LinkShape& link, std::uint32_t payload_bytes) {
  std::uint32_t slots = 1;
  while (slots < 1U << 31U && buffer_bytes(slots, payload_bytes) < least_buffer_bytes(link)) slots *= 2;
  return slots;
}

/// Bytes of data that a pool allocates: the most that it ever stores.
constexpr std::uint64_t pool_bytes(std::uint32_t slots, std::uint32_t payload_bytes, std::uint32_t members,
                                   bool keeps_order) {
  return std::uint64_t{2} * slots * payload_bytes * (keeps_order ? members : 1);
}

}  // namespace unisono::slots
