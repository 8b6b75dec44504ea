// Division: core/divide.hpp of the microcontroller, which stands before the other in the compiler's search path. The
// custom-function unit divides, and keeps the last result of each slot: all steps of a call divide the same numbers.
#pragma once

#include <cstdint>

#include "firmware/machine/port.hpp"

namespace unisono {

struct Quotient {
  std::uint64_t quotient;
  std::uint32_t rest;
};

/// total / parts and total % parts.
UNISONO_INLINE constexpr Quotient divide(std::uint64_t total, std::uint32_t parts) {
  if (__builtin_is_constant_evaluated()) return {total / parts, static_cast<std::uint32_t>(total % parts)};
  using namespace port;  // NOLINT(google-build-using-namespace)
  tell<kGroupCheck, kDivideTotal>(static_cast<std::uint32_t>(total), static_cast<std::uint32_t>(total >> 32U));
  const std::uint32_t low = ask<kGroupCheck, kDivideQuotient>(parts);
  const std::uint32_t high = ask<kGroupCheck, kDivideHigh>();
  const std::uint32_t rest = ask<kGroupCheck, kDivideRest>();
  return {std::uint64_t{high} << 32U | low, rest};
}

}  // namespace unisono
