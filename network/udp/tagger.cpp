#include "network/udp/tagger.hpp"

#include <sodium/core.h>
#include <sodium/crypto_onetimeauth_poly1305.h>
#include <sodium/crypto_shorthash_siphash24.h>
#include <sodium/crypto_verify_16.h>

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace unisono::udp {

namespace {

// Four sums of 32 bits, two products of 64: what every 64-bit processor has.
using FourWords = std::uint32_t __attribute__((vector_size(16)));
using TwoWords = std::uint64_t __attribute__((vector_size(16)));

FourWords load(const std::byte* at) {
  FourWords words;
  std::memcpy(&words, at, sizeof words);
  return words;
}

/// The sum of the products of words at the same place, each of the even places and of the odd ones.
TwoWords products(FourWords one, FourWords other) {
  const auto a = reinterpret_cast<TwoWords>(one);
  const auto b = reinterpret_cast<TwoWords>(other);
#if defined(__SSE2__)
  // Compilers make whole products of 64 bits of what is below, of three instructions each.
  const auto product = [](TwoWords left, TwoWords right) {
    return reinterpret_cast<TwoWords>(_mm_mul_epu32(reinterpret_cast<__m128i>(left), reinterpret_cast<__m128i>(right)));
  };
  return product(a, b) + product(a >> 32, b >> 32);
#else
  constexpr std::uint64_t kLow = 0xFFFF'FFFF;
  const TwoWords low = {kLow, kLow};
  return (a & low) * (b & low) + (a >> 32) * (b >> 32);
#endif
}

const unsigned char* unsigned_of(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

}  // namespace

Tagger::Tagger(std::span<const std::byte> secret, std::string_view purpose) {
  // Chooses the library's fastest functions, once.
  [[maybe_unused]] const int chosen = sodium_init();
  std::array<std::byte, kBlock + kShift + 32> stream;
  std::uint32_t count = 0;
  for (std::size_t at = 0; at < stream.size(); at += sizeof(Digest), ++count) {
    const Digest part = digest_of(secret, purpose, {bytes_of(count)});
    std::memcpy(stream.data() + at, part.data(), std::min(part.size(), stream.size() - at));
  }
  std::memcpy(sums_key_.data(), stream.data(), sums_key_.size());
  std::memcpy(number_key_.data(), stream.data() + sums_key_.size(), number_key_.size());
  std::memcpy(polynomial_key_.data(), stream.data() + sums_key_.size() + 16, polynomial_key_.size());
}

Tag Tagger::tag_of(std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> piece) const {
  constexpr std::size_t kMostBlocks = std::size_t{64} * 1024 / kBlock;
  std::array<std::byte, kTagAt + kMostBlocks * 16> text;
  std::memcpy(text.data(), head.data(), kTagAt);
  std::size_t text_bytes = kTagAt;
  for (std::size_t at = 0; at < piece.size(); at += kBlock) {
    const std::size_t bytes = std::min(kBlock, piece.size() - at);
    TwoWords first{};
    TwoWords second{};
    for (std::size_t i = 0; i < bytes; i += 32) {
      const std::byte* const key = sums_key_.data() + i;
      const FourWords left = load(piece.data() + at + i);
      const FourWords right = load(piece.data() + at + i + 16);
      first += products(left + load(key), right + load(key + 16));
      second += products(left + load(key + 16), right + load(key + 32));
    }
    const std::array<std::uint64_t, 2> sums{first[0] + first[1], second[0] + second[1]};
    std::memcpy(text.data() + text_bytes, sums.data(), sizeof sums);
    text_bytes += sizeof sums;
  }
  // r of the polynomial is the session's; s is the number's, as in Bernstein's Poly1305-AES.
  std::array<unsigned char, crypto_onetimeauth_poly1305_KEYBYTES> key;
  std::memcpy(key.data(), polynomial_key_.data(), 16);
  static_assert(crypto_shorthash_siphashx24_BYTES == 16);
  crypto_shorthash_siphashx24(key.data() + 16, reinterpret_cast<const unsigned char*>(&number), sizeof number,
                              unsigned_of(number_key_.data()));
  Tag tag;
  crypto_onetimeauth_poly1305(reinterpret_cast<unsigned char*>(tag.data()), unsigned_of(text.data()), text_bytes,
                              key.data());
  return tag;
}

bool Tagger::verify(const Tag& tag, std::uint64_t number, std::span<const std::byte> head,
                    std::span<const std::byte> piece) const {
  const Tag right = tag_of(number, head, piece);
  return crypto_verify_16(unsigned_of(tag.data()), unsigned_of(right.data())) == 0;
}

}  // namespace unisono::udp
