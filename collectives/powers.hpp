// Powers of two, for algorithms that proceed by doubling or halving. Freestanding.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "core/generated/spec.hpp"

namespace unisono::build {

constexpr bool is_power_of_two(std::uint32_t x) { return x != 0 && (x & (x - 1)) == 0; }

/// Least k with 2^k >= x, for x >= 1: the rounds in which doubling reaches x.
constexpr std::uint32_t log2_ceil(std::uint32_t x) { return bit_width(x - 1); }

/// Greatest k with 2^k <= x, for x >= 1.
constexpr std::uint32_t log2_floor(std::uint32_t x) { return bit_width(x) - 1; }

/// Steps that hold `rounds` rounds of at most `moves` moves, as many to a step as it has room for.
constexpr std::uint32_t steps_for(std::uint32_t rounds, std::uint32_t moves = 1) {
  const std::uint32_t each = static_cast<std::uint32_t>(kMovesPerStep) / moves;
  return (rounds + each - 1) / each;
}

/// Calls `round(r)` for the rounds of a step so made. Few and full steps: what rounds have in common is worked out once
/// a step.
template <class Round>
constexpr void each_round(std::uint32_t step, std::uint32_t rounds, std::uint32_t moves, Round round) {
  const std::uint32_t each = static_cast<std::uint32_t>(kMovesPerStep) / moves;
  const std::uint32_t begin = step * each;
  const std::uint32_t end = rounds - begin < each ? rounds : begin + each;
  for (std::uint32_t r = begin; r < end; ++r) round(r);
}

}  // namespace unisono::build
