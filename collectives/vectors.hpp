// Counts and displacements of v-collectives in the params region. Freestanding.
#pragma once

#include <cstdint>

#include "core/call.hpp"

namespace unisono::build {

/// Writes `size` counts (elements) to words[0 .. size) and as many displacements (bytes) to
/// words[size .. 2 size), by rank, or of a call by positions (by_position.hpp) by position. Null counts are zeros, but
/// for this rank's, which is `own`; null displacements mean one block behind the other, in order of rank.
inline void fill_layout(const Call& call, const std::uint64_t* counts, const std::uint64_t* displacements,
                        std::uint64_t* words, std::uint64_t own = 0) {
  std::uint64_t packed = 0;
  for (std::uint32_t i = 0; i < call.size; ++i) {
    const std::uint32_t at = call.by_position ? call.groups->position_of[i] : i;
    words[at] = counts != nullptr ? counts[i] : at == call.rank ? own : 0;
    words[call.size + at] = (displacements != nullptr ? displacements[i] : packed) * element_bytes(call);
    packed += words[at];
  }
}

}  // namespace unisono::build
