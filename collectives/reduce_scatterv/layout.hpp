// Where the algorithms of reduce-scatterv find blocks and put results. Freestanding.
#pragma once

#include "collectives/build.hpp"

namespace unisono::collectives {

/// Block `rank` of the input; its count is the params word `rank`.
constexpr build::Place block_of(const Call& call, std::uint32_t rank) {
  return build::indirect(call.in_place ? Region::kDst : Region::kSrc, call.size + rank);
}

/// Where the result is put together.
constexpr build::Place result_of(const Call& call) { return call.in_place ? build::scratch() : build::dst(); }

/// The last move in place, when all of the input has been read: the result to the begin of dst.
inline void deliver(const Call& call, Emit& emit) {
  const std::uint32_t before = emit.moves();
  if (call.in_place) {
    emit(build::Build(call).take(build::scratch()).keep(build::dst()).count_at(call.rank).after_all(before));
  }
}

/// Bytes that any one block may have: counts differ, and all of them may be one rank's.
constexpr std::uint64_t largest_block(const Call& call) { return call.count * element_bytes(call); }

}  // namespace unisono::collectives
