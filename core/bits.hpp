// Positions of bits in 32-bit numbers. Freestanding.
#pragma once

#include <bit>
#include <cstdint>

namespace unisono {

/// Bits that it takes to write x; 0 for 0.
constexpr std::uint32_t bit_width(std::uint32_t x) { return static_cast<std::uint32_t>(std::bit_width(x)); }

/// The bits of x in reverse order: bit 0 becomes bit 31.
constexpr std::uint32_t reverse_bits(std::uint32_t x) {
  x = (x >> 1U & 0x55555555U) | (x & 0x55555555U) << 1U;
  x = (x >> 2U & 0x33333333U) | (x & 0x33333333U) << 2U;
  x = (x >> 4U & 0x0f0f0f0fU) | (x & 0x0f0f0f0fU) << 4U;
  x = (x >> 8U & 0x00ff00ffU) | (x & 0x00ff00ffU) << 8U;
  return x >> 16U | x << 16U;
}

}  // namespace unisono
