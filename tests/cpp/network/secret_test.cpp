// Proofs of the job's key.
#include "network/secret.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace unisono {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string hexadecimal(const Digest& digest) {
  std::string text;
  for (const std::byte byte : digest) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(byte));
    text += two;
  }
  return text;
}

TEST(Digest, IsHmacSha256OfLengthsAndParts) {
  // As Python's hmac.new(b"key", 8-byte lengths and parts, "sha256") gives it.
  const std::string first = "abc";
  const std::string second = "de";
  EXPECT_EQ(hexadecimal(digest_of(bytes_of(std::string("key")), "purpose", {bytes_of(first), bytes_of(second)})),
            "00e540b9f88f083f4cfe177fd4270f13f26b00b5d0355e1c97d611df1902a2cb");
}

TEST(Digest, DependsOnKeyPurposeAndWherePartsEnd) {
  const std::string parts[] = {"ab", "c", "a", "bc", ""};
  const auto of = [&](const char* key, const char* purpose, int one, int other) {
    return digest_of(bytes_of(std::string(key)), purpose, {bytes_of(parts[one]), bytes_of(parts[other])});
  };
  const Digest digest = of("key", "purpose", 0, 1);
  EXPECT_TRUE(equal(digest, of("key", "purpose", 0, 1)));
  EXPECT_FALSE(equal(digest, of("kez", "purpose", 0, 1)));
  EXPECT_FALSE(equal(digest, of("key", "purposf", 0, 1)));
  EXPECT_FALSE(equal(digest, of("key", "purpose", 2, 3)));
  EXPECT_FALSE(equal(digest, digest_of(bytes_of(std::string("key")), "purpose", {bytes_of(std::string("abc"))})));
  EXPECT_FALSE(
      equal(of("key", "purpose", 0, 4), digest_of(bytes_of(std::string("key")), "purpose", {bytes_of(parts[0])})));
}

TEST(Random, IsNeverTheSame) {
  std::array<std::byte, 32> one{};
  std::array<std::byte, 32> other{};
  fill_random(one);
  fill_random(other);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace unisono
