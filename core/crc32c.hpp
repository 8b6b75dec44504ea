// CRC-32C (Castagnoli), the check of headers, payload trailers and call signatures. Freestanding.
//
// Source: Castagnoli, Braeuer, Herrmann, "Optimization of cyclic redundancy-check codes with 24 and 32
// parity bits", IEEE Trans. Communications 41(6), 1993; parameters as in RFC 3720 (iSCSI): reflected
// polynomial 0x82F63B78, register preset to ones and inverted at the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace unisono {

namespace crc32c_detail {

/// table[k][b]: what byte b leaves in the register after k further zero bytes have followed it.
template <std::size_t Slices>
constexpr std::array<std::array<std::uint32_t, 256>, Slices> make_tables() {
  std::array<std::array<std::uint32_t, 256>, Slices> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0x82F63B78U : 0U);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < Slices; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = tables[0][before & 0xFFU] ^ (before >> 8U);
    }
  }
  return tables;
}

// Two tables, so that a microcontroller that checks bytes only holds 1 KiB instead of 8.
inline constexpr auto kByteTable = make_tables<1>();
inline constexpr auto kWordTable = make_tables<8>();

}  // namespace crc32c_detail

/// CRC-32C of `bytes`. Checks can be continued: with `crc` = crc32c(a), crc32c(b, crc) is the check of a
/// followed by b.
constexpr std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t crc = 0) {
  std::uint32_t value = ~crc;
  for (const std::uint8_t byte : bytes) {
    value = crc32c_detail::kByteTable[0][(value ^ byte) & 0xFFU] ^ (value >> 8U);
  }
  return ~value;
}

/// CRC-32C of the first `bytes` bytes of little-endian words, eight bytes at a time (Kounavis and Berry,
/// "Novel table lookup-based algorithms for high-performance CRC generation", 2008). `bytes` is at most
/// eight times the number of words.
constexpr std::uint32_t crc32c_words(std::span<const std::uint64_t> words, std::size_t bytes) {
  std::uint32_t value = ~std::uint32_t{0};
  std::size_t word = 0;
  for (; bytes >= 8; bytes -= 8) {
    const std::uint64_t x = words[word++] ^ value;
    value = 0;
    for (std::size_t k = 0; k < 8; ++k) value ^= crc32c_detail::kWordTable[7 - k][(x >> (8 * k)) & 0xFFU];
  }
  for (std::size_t k = 0; k < bytes; ++k) {
    const std::uint32_t byte = static_cast<std::uint32_t>(words[word] >> (8 * k)) & 0xFFU;
    value = crc32c_detail::kWordTable[0][(value ^ byte) & 0xFFU] ^ (value >> 8U);
  }
  return ~value;
}

}  // namespace unisono
