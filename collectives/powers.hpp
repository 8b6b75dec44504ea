// Powers of two, for algorithms that proceed by doubling or halving. Freestanding.
#pragma once

#include <cstdint>

#include "core/generated/spec.hpp"

namespace unisono::build {

constexpr bool is_power_of_two(std::uint32_t x) { return x != 0 && (x & (x - 1)) == 0; }

/// Least k with 2^k >= x, for x >= 1: the rounds in which doubling reaches x.
constexpr std::uint32_t log2_ceil(std::uint32_t x) {
  std::uint32_t k = 0;
  while ((std::uint64_t{1} << k) < x) ++k;
  return k;
}

/// Greatest k with 2^k <= x, for x >= 1.
constexpr std::uint32_t log2_floor(std::uint32_t x) {
  std::uint32_t k = 0;
  while (x >>= 1U) ++k;
  return k;
}

/// Steps that hold `moves` moves at kMovesPerStep each.
constexpr std::uint32_t steps_for(std::uint32_t moves) {
  return (moves + static_cast<std::uint32_t>(kMovesPerStep) - 1) / static_cast<std::uint32_t>(kMovesPerStep);
}

}  // namespace unisono::build
