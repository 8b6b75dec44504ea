// The keyed tag that every datagram of a session carries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "network/secret.hpp"
#include "network/udp/frames.hpp"

namespace unisono::udp {

/// Tags of one direction of one session. The piece is reduced by NH (Black, Halevi, Krawczyk, Krovetz and Rogaway,
/// "UMAC: Fast and Secure Message Authentication", CRYPTO 1999), two sums for each 1024 bytes, and these with the frame
/// by Poly1305, whose last addend is a function of the datagram's number: so every number has a tag of its own. NH and
/// Poly1305 one after the other are those of Adiantum (Crowley and Biggers, 2018). Much of a network's time would go
/// into a tag that reads every byte with more than a multiplication for each eight of them.
///
/// Without the key, a tag is guessed with a chance of about 2^-60.
class Tagger {
 public:
  Tagger() = default;
  /// `purpose` keeps keys apart that are made of the same secret.
  Tagger(std::span<const std::byte> secret, std::string_view purpose);

  /// Of the first 48 bytes of `head` and of `piece`, whose length is a multiple of 32 and at most 64 KiB.
  Tag tag_of(std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> piece) const;
  /// Takes a time that does not depend on the contents.
  bool verify(const Tag& tag, std::uint64_t number, std::span<const std::byte> head,
              std::span<const std::byte> piece) const;

 private:
  static constexpr std::size_t kBlock = 1024;
  static constexpr std::size_t kShift = 16;  ///< between the two sums' keys
  alignas(16) std::array<std::byte, kBlock + kShift> sums_key_{};
  std::array<std::byte, 16> number_key_{};
  std::array<std::byte, 16> polynomial_key_{};
};

}  // namespace unisono::udp
