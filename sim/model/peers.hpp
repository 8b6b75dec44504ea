// Whom a move sends to, and whom it takes from.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program.hpp"

namespace unisono::sim {

/// Data go by this port of the network, grants by another.
inline constexpr std::uint16_t kModelDataPort = 0, kModelControlPort = 1;

/// The ranks that a field of a move names.
inline std::vector<std::uint32_t> ranks_of(const Program& program, PeerMode mode, std::uint32_t peer) {
  if (mode == PeerMode::kRank) return {peer};
  const auto first = program.pool.begin() + peer;
  return {first + 1, first + 1 + *first};
}

/// Whether a move does anything, and whether it sends a message, or takes one.
constexpr bool is_work(const Move& move) { return move.kind == MoveKind::kMove && (move.count > 0 || move.signal); }
constexpr bool sends(const Move& move) { return is_work(move) && move.remote.kind == RemoteKind::kMessage; }
constexpr bool takes(const Move& move) { return is_work(move) && move.op1.kind == OperandKind::kArrival; }

}  // namespace unisono::sim
