// Positions of bits: core/bits.hpp of the microcontroller, which stands before the other in the compiler's search path.
// RV32IM has no instructions for them; the custom-function unit does.
#pragma once

#include <bit>
#include <cstdint>

#include "firmware/machine/port.hpp"

namespace unisono {

/// Bits that it takes to write x; 0 for 0.
UNISONO_INLINE constexpr std::uint32_t bit_width(std::uint32_t x) {
  if (__builtin_is_constant_evaluated()) return static_cast<std::uint32_t>(std::bit_width(x));
  return port::compute<port::kGroupCheck, port::kBitWidth>(x);
}

/// The bits of x in reverse order: bit 0 becomes bit 31.
UNISONO_INLINE constexpr std::uint32_t reverse_bits(std::uint32_t x) {
  if (__builtin_is_constant_evaluated()) {
    std::uint32_t reversed = 0;
    for (std::uint32_t i = 0; i < 32; ++i) reversed |= (x >> i & 1U) << (31 - i);
    return reversed;
  }
  return port::compute<port::kGroupCheck, port::kBitReverse>(x);
}

}  // namespace unisono
