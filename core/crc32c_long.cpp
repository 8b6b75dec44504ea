#include "core/crc32c_long.hpp"

#include <cstring>

#include "core/crc32c.hpp"

#if defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace unisono {

namespace {

std::uint64_t word_at(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// Eight bytes at a time by tables, as crc32c_words, for processors without the instruction.
std::uint32_t by_tables(std::span<const std::byte> bytes) {
  std::uint32_t value = ~std::uint32_t{0};
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    const std::uint64_t x = word_at(at) ^ value;
    value = 0;
    for (std::size_t k = 0; k < 8; ++k) value ^= crc32c_detail::kWordTable[7 - k][(x >> (8 * k)) & 0xFFU];
  }
  for (; left != 0; --left, ++at) {
    value = crc32c_detail::kByteTable[0][(value ^ static_cast<std::uint8_t>(*at)) & 0xFFU] ^ (value >> 8U);
  }
  return ~value;
}

#if defined(__x86_64__)

[[gnu::target("sse4.2")]] std::uint32_t by_instruction(std::span<const std::byte> bytes) {
  std::uint64_t value = ~std::uint32_t{0};
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) value = __builtin_ia32_crc32di(value, word_at(at));
  auto low = static_cast<std::uint32_t>(value);
  for (; left != 0; --left, ++at) low = __builtin_ia32_crc32qi(low, static_cast<std::uint8_t>(*at));
  return ~low;
}

bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }

#elif defined(__aarch64__)

[[gnu::target("+crc")]] std::uint32_t by_instruction(std::span<const std::byte> bytes) {
  std::uint32_t value = ~std::uint32_t{0};
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) value = __crc32cd(value, word_at(at));
  for (; left != 0; --left, ++at) value = __crc32cb(value, static_cast<std::uint8_t>(*at));
  return ~value;
}

bool has_instruction() {
  constexpr unsigned long kCrc32 = 1UL << 7U;  // HWCAP_CRC32
  return (getauxval(AT_HWCAP) & kCrc32) != 0;
}

#else

std::uint32_t by_instruction(std::span<const std::byte> bytes) { return by_tables(bytes); }
bool has_instruction() { return false; }

#endif

}  // namespace

std::uint32_t crc32c_long(std::span<const std::byte> bytes) {
  static const bool has = has_instruction();
  return has ? by_instruction(bytes) : by_tables(bytes);
}

}  // namespace unisono
