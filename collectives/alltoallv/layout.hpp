// Where the algorithms of all-to-allv find counts and places. Freestanding.
#pragma once

#include "collectives/build.hpp"

namespace unisono::collectives {

/// Words of params with counts, and places whose offsets stand in params.
struct AlltoallvLayout {
  std::uint32_t size;
  bool in_place;

  explicit constexpr AlltoallvLayout(const Call& call) : size(call.size), in_place(call.in_place) {}
  constexpr std::uint32_t send_count(std::uint32_t peer) const { return peer; }
  constexpr std::uint32_t recv_count(std::uint32_t peer) const { return 2 * size + peer; }
  constexpr build::Place source(std::uint32_t peer) const {
    return build::indirect(in_place ? Region::kDst : Region::kSrc, size + peer);
  }
  constexpr build::Place target(std::uint32_t peer) const { return build::indirect(Region::kDst, 3 * size + peer); }
};

}  // namespace unisono::collectives
