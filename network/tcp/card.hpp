// What peers must know to reach an endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "network/tcp/address.hpp"

namespace unisono::tcp {

inline constexpr std::uint8_t kCardVersion = 1;
/// Addresses in a card: more than these are left out, the last first.
inline constexpr std::size_t kMostAddresses = 12;

/// One port, and the addresses at which it listens, in the order in which they are to be tried.
struct Card {
  std::uint16_t port = 0;
  std::vector<Address> addresses;  ///< each with the card's port
  bool tls = false;                ///< its connections are encrypted
  friend bool operator==(const Card&, const Card&) = default;
};

/// The longest card of this form, so that several networks' cards fit together.
inline constexpr std::size_t kMostBytesOfCard = 256;

/// At most `most_bytes`; addresses that do not fit are left out, the last first.
std::vector<std::byte> encode_card(const Card& card, std::size_t most_bytes = kMostBytesOfCard);
/// Throws Error(kBootstrap) that says what is wrong, in words that follow whose card it is.
Card decode_card(std::span<const std::byte> bytes);

}  // namespace unisono::tcp
