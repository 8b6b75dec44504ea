// A program: the moves of one rank, recorded.
#pragma once

#include <cstdint>
#include <vector>

#include "core/generated/spec.hpp"

namespace unisono {

/// The moves of one rank, with their constant pool. Holds nothing that differs between launches.
struct Program {
  std::vector<Move> moves;
  std::vector<std::uint32_t> pool;  ///< peer lists: count, rank, rank, ...
  std::uint64_t scratch_bytes = 0;  ///< size the scratch region must have
  std::uint64_t params_bytes = 0;   ///< size the params region must have

  friend bool operator==(const Program&, const Program&) = default;
};

/// Whether a move reads or writes src or dst of other ranks, which only programs of direct calls may do.
constexpr bool reaches_directly(const Move& move) {
  if (move.kind != MoveKind::kMove) return false;
  const RemoteAddress& there = move.remote_address;
  return (move.op1.kind == OperandKind::kRemoteMemory && there.region != Region::kWindow) ||
         (move.remote.kind == RemoteKind::kMemory && there.result_region != Region::kWindow);
}

}  // namespace unisono
