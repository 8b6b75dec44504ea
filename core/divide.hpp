// Division that costs what the numbers need. Freestanding.
#pragma once

#include <cstdint>

namespace unisono {

struct Quotient {
  std::uint64_t quotient;
  std::uint32_t rest;
};

/// total / parts and total % parts. A machine of 32 bits has no instruction for the long division, and most totals
/// need none.
constexpr Quotient divide(std::uint64_t total, std::uint32_t parts) {
  if (total >> 32U == 0) {
    const auto low = static_cast<std::uint32_t>(total);
    const std::uint32_t quotient = low / parts;
    return {quotient, low - quotient * parts};
  }
  const std::uint64_t quotient = total / parts;
  return {quotient, static_cast<std::uint32_t>(total - quotient * parts)};
}

}  // namespace unisono
