// The counts of a v-collective, for calls in a hurry: what they come to, if nothing is wrong with them.
#pragma once

#include <cstdint>
#include <optional>

#include "core/call.hpp"
#include "core/footprint.hpp"

namespace unisono::cclo {

struct PlainBlocks {
  std::uint64_t count = 0;  ///< as Call::count, where no algorithm is named
  VectorExtents extents;
};

/// What the counts of `call`, whose rank and size are set, come to. Empty if an array is missing, a count or
/// displacement is none, blocks that are written might overlap, or the call must be agreed on first (in-place
/// alltoallv): `admit` and the front door say what is wrong, if anything is. No allocation.
std::optional<PlainBlocks> plain_blocks(const Call& call, const VectorArguments& arguments);

}  // namespace unisono::cclo
