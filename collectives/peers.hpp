// Naming the peers of a move, one or several. Freestanding.
#pragma once

#include <cstdint>

#include "collectives/build.hpp"

namespace unisono::build {

/// Most ranks of an algorithm in which everybody sends to everybody in one round: a list of all must fit one step.
inline constexpr std::uint32_t kFlatRanks = 64;

/// op1 is one message of each of the `count` peers `peer_at(0)`, `peer_at(1)`, ..., combined in this
/// order; one peer is named directly, several through a list, none leaves the move as it is.
template <class PeerAt>
void arrive_from(Build& move, Emit& emit, std::uint32_t count, std::uint32_t tag, PeerAt peer_at) {
  if (count == 0) return;
  if (count == 1) {
    move.arrive(peer_at(std::uint32_t{0}), tag);
    return;
  }
  const std::uint32_t list = emit.begin_list(count);
  for (std::uint32_t i = 0; i < count; ++i) emit.peer(peer_at(i));
  move.arrive(PeerMode::kList, list, tag);
}

/// The remote result goes to each of the `count` peers `peer_at(0)`, `peer_at(1)`, ...
template <class PeerAt>
void send_to(Build& move, Emit& emit, std::uint32_t count, std::uint32_t tag, PeerAt peer_at) {
  if (count == 0) return;
  if (count == 1) {
    move.send(peer_at(std::uint32_t{0}), tag);
    return;
  }
  const std::uint32_t list = emit.begin_list(count);
  for (std::uint32_t i = 0; i < count; ++i) emit.peer(peer_at(i));
  move.send(PeerMode::kList, list, tag);
}

}  // namespace unisono::build
