// Fields of the packed structures that a Verilated model has on its ports.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::rtl {

/// Sets bits lo .. lo+width-1 (at most 64) of an array of 32-bit words.
template <class Words>
void set_bits(Words& words, std::size_t lo, std::size_t width, std::uint64_t value) {
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t bit = lo + i;
    const std::uint32_t mask = std::uint32_t{1} << (bit % 32);
    if ((value >> i & 1U) != 0) {
      words[bit / 32] |= mask;
    } else {
      words[bit / 32] &= ~mask;
    }
  }
}

/// Bits lo .. lo+width-1 (at most 64).
template <class Words>
std::uint64_t get_bits(const Words& words, std::size_t lo, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t bit = lo + i;
    value |= static_cast<std::uint64_t>(words[bit / 32] >> (bit % 32) & 1U) << i;
  }
  return value;
}

}  // namespace unisono::rtl
