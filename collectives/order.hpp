// Waiting for moves that are known by their positions in the program. Freestanding.
#pragma once

#include <cstdint>

#include "collectives/build.hpp"

namespace unisono::build {

/// The next move waits for those at positions begin .. end-1. What is further back than the window holds it anyway.
inline void after_positions(Build& move, const Emit& emit, std::uint32_t begin, std::uint32_t end) {
  const std::uint32_t here = emit.moves();
  for (std::uint32_t at = end; at > begin && here - at < static_cast<std::uint32_t>(kWindow); --at) {
    move.after(here - at + 1);
  }
}

}  // namespace unisono::build
