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

}  // namespace unisono
