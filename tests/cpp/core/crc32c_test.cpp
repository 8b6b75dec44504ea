#include "core/crc32c.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "core/crc32c_long.hpp"

namespace unisono {
namespace {

std::uint32_t of_text(std::string_view text) {
  return crc32c({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

// Straight from the polynomial, one bit at a time: shares nothing with the tables under test.
std::uint32_t bitwise(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t value = 0xFFFFFFFFU;
  for (const std::uint8_t byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool feedback = ((value ^ (byte >> bit)) & 1U) != 0;
      value >>= 1U;
      if (feedback) value ^= 0x82F63B78U;
    }
  }
  return ~value;
}

TEST(Crc32c, MatchesPublishedValues) {
  EXPECT_EQ(of_text(""), 0U);
  EXPECT_EQ(of_text("123456789"), 0xE3069283U);  // the check value of the CRC catalogues
  // RFC 3720, appendix B.4.
  std::array<std::uint8_t, 32> bytes{};
  EXPECT_EQ(crc32c(bytes), 0x8A9136AAU);
  bytes.fill(0xFF);
  EXPECT_EQ(crc32c(bytes), 0x62A8AB43U);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(crc32c(bytes), 0x46DD794EU);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(31 - i);
  EXPECT_EQ(crc32c(bytes), 0x113FDB5CU);
}

TEST(Crc32c, IsAConstantExpression) {
  constexpr std::array<std::uint8_t, 3> kBytes{'1', '2', '3'};
  static_assert(crc32c(kBytes) != 0);
  EXPECT_EQ(crc32c(kBytes), of_text("123"));
}

TEST(Crc32c, WordsAndBytesAndBitsAgreeForEveryLength) {
  std::mt19937_64 random(1);
  for (std::size_t length = 0; length <= 64; ++length) {
    std::array<std::uint64_t, 8> words{};
    for (std::uint64_t& word : words) word = random();
    std::vector<std::uint8_t> bytes(length);
    for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::uint8_t>(words[i / 8] >> (8 * (i % 8)));
    EXPECT_EQ(crc32c_words(words, length), bitwise(bytes)) << "of " << length << " bytes";
    EXPECT_EQ(crc32c(bytes), bitwise(bytes)) << "of " << length << " bytes";
  }
}

TEST(Crc32c, CanBeContinued) {
  std::mt19937_64 random(2);
  std::vector<std::uint8_t> bytes(200);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  const std::span<const std::uint8_t> all = bytes;
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all)) << "cut at " << cut;
  }
}

TEST(Crc32c, OfLongPiecesIsTheSameFromAnyAddress) {
  std::mt19937 random(7);
  std::vector<std::uint8_t> bytes(9001);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (const std::size_t length : {0UL, 1UL, 7UL, 8UL, 9UL, 63UL, 64UL, 1344UL, 8192UL, 8990UL}) {
      const std::span<const std::uint8_t> piece(bytes.data() + begin, length);
      EXPECT_EQ(crc32c_long(std::as_bytes(piece)), crc32c(piece)) << begin << " " << length;
    }
  }
}

}  // namespace
}  // namespace unisono
