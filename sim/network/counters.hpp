// What a link has carried and lost.
#pragma once

#include <array>
#include <cstdint>

namespace unisono::sim {

/// Why a frame was not delivered.
enum class Drop : std::uint8_t {
  kLoss,      ///< a fault of the link: `loss`
  kDown,      ///< the link was down, and nothing of the frame had arrived
  kOverflow,  ///< no room in the switch queue that feeds this link
  kReceiver,  ///< the node at the end of this link had not popped enough
  kCheck,     ///< damaged on its way (on this or another link): the frame check of the node at the end of this link
  kSession,   ///< by the session's end in the node at the end of this link: it came twice, or behind a gap
};
inline constexpr std::size_t kDrops = 6;
const char* name_of(Drop cause);

/// Of one link, that is, of one output port and of the input port at its end. Every frame that a link has begun to
/// carry is among its `frames`, whatever becomes of it. Summed over all links, and once nothing is under way: frames
/// pushed + duplicated = delivered + dropped, where `delivered` is what nodes have popped.
struct LinkCounters {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;       ///< of payload
  std::uint64_t wire_bytes = 0;  ///< with overhead and padding
  std::array<std::uint64_t, kDrops> dropped{};
  std::uint64_t corrupted = 0, duplicated = 0, reordered = 0;
  std::uint64_t truncated = 0;         ///< the link went down while the frame was on it
  std::uint64_t busy_cycles = 0;       ///< in which bytes were sent, rounded down
  std::uint64_t queue_bytes = 0;       ///< waiting now in the switch queue that feeds the link
  std::uint64_t queue_high_water = 0;  ///< most that ever waited there
  std::uint64_t blocked_cycles = 0;    ///< pause: a frame waited and the link was free, but there was no room beyond it

  std::uint64_t lost(Drop cause) const { return dropped[static_cast<std::size_t>(cause)]; }
  friend bool operator==(const LinkCounters&, const LinkCounters&) = default;
};

}  // namespace unisono::sim
