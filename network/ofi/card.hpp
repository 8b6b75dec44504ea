// What peers must know to reach an endpoint by libfabric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace unisono::ofi {

inline constexpr std::uint8_t kCardVersion = 2;
/// Other networks need room on an endpoint's card, too.
inline constexpr std::size_t kMostCardBytes = 128;

/// Who can be reached by whom: ends with the same provider, which speaks the same protocol.
struct Card {
  /// The end writes to its peers' memory, and lets them write to its own. Only pairs do of which both have it.
  static constexpr std::uint8_t kWrites = 1;

  std::string provider;
  std::uint32_t protocol = 0;          ///< FI_PROTO_...
  std::uint32_t protocol_version = 0;  ///< of it
  std::vector<std::byte> address;      ///< as fi_getname gives it
  std::uint8_t abilities = 0;          ///< bits, of which those that are not known here mean nothing
  friend bool operator==(const Card&, const Card&) = default;
};

/// Throws Error(kBootstrap) if it would be longer than kMostCardBytes.
std::vector<std::byte> encode_card(const Card& card);
/// Throws Error(kBootstrap) that says what is wrong, in words that follow whose card it is.
Card decode_card(std::span<const std::byte> bytes);

}  // namespace unisono::ofi
