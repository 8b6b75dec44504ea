// Numbers to the base of a call's radix, for algorithms that proceed by its powers. Freestanding.
#pragma once

#include <cstdint>

#include "core/call.hpp"

namespace unisono::build {

/// The radix that a call's algorithm proceeds by, at least 2; `usual` is its default.
constexpr std::uint32_t radix_of(const Call& call, std::uint32_t usual) { return call.radix < 2 ? usual : call.radix; }

/// Least k with radix^k >= x, for x >= 1: the rounds in which multiplying by the radix reaches x.
constexpr std::uint32_t log_ceil(std::uint32_t x, std::uint32_t radix) {
  std::uint32_t rounds = 0;
  for (std::uint64_t power = 1; power < x; power *= radix) ++rounds;
  return rounds;
}

/// radix^k, which must fit.
constexpr std::uint32_t power_of(std::uint32_t radix, std::uint32_t k) {
  std::uint32_t power = 1;
  for (; k > 0; --k) power *= radix;
  return power;
}

}  // namespace unisono::build
