// Where a collective puts the moves it generates: core/emit.hpp of the microcontroller, which stands before the other
// in the compiler's search path. Moves, lists and their numbers are kept by the custom-function unit.
#pragma once

#include <cstdint>

#include "core/generated/spec.hpp"
#include "firmware/machine/port.hpp"

namespace unisono {

class Emit {
 public:
  /// Appends the move that is being built to the program.
  template <class Built>
  UNISONO_INLINE void operator()(const Built& move) {
    port::tell<port::kGroupBuild, port::kBuildEmit>(move.ticket());
  }
  /// As in the other core/emit.hpp.
  UNISONO_INLINE std::uint32_t begin_list(std::uint32_t count) {
    return port::ask<port::kGroupBuild, port::kBuildList>(count);
  }
  UNISONO_INLINE void peer(std::uint32_t rank) { port::tell<port::kGroupBuild, port::kBuildList>(rank); }
  UNISONO_INLINE std::uint32_t moves() const { return port::ask<port::kGroupBuild, port::kBuildMoves>(); }
};

}  // namespace unisono
