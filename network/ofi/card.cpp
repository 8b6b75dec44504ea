#include "network/ofi/card.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::ofi {

namespace {

// Version, length of the provider's name, abilities, protocol and its version (4 bytes each, low byte first), the name,
// and the address: all that is left.
constexpr std::size_t kHeadBytes = 3 + 4 + 4;

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::kBootstrap, text); }

void put(std::vector<std::byte>& bytes, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::byte>(value >> shift & 0xffU));
}

std::uint32_t number_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

}  // namespace

std::vector<std::byte> encode_card(const Card& card) {
  const std::size_t need = kHeadBytes + card.provider.size() + card.address.size();
  if (need > kMostCardBytes) {
    refuse(formatted("the address of an endpoint of provider {} takes {} bytes, and a card {} at most", card.provider,
                     card.address.size(), kMostCardBytes));
  }
  std::vector<std::byte> bytes{std::byte{kCardVersion}, static_cast<std::byte>(card.provider.size()),
                               static_cast<std::byte>(card.abilities)};
  put(bytes, card.protocol);
  put(bytes, card.protocol_version);
  const auto name = std::as_bytes(std::span(card.provider));
  bytes.insert(bytes.end(), name.begin(), name.end());
  bytes.insert(bytes.end(), card.address.begin(), card.address.end());
  return bytes;
}

Card decode_card(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeadBytes || bytes.size() > kMostCardBytes) {
    refuse(formatted("has {} bytes; allowed are {} to {}", bytes.size(), kHeadBytes, kMostCardBytes));
  }
  if (const auto version = static_cast<unsigned>(bytes[0]); version != kCardVersion) {
    refuse(formatted("is of version {}, this library reads {}", version, unsigned{kCardVersion}));
  }
  const auto name = static_cast<std::size_t>(bytes[1]);
  if (name == 0 || kHeadBytes + name >= bytes.size()) refuse("ends within a name, or has no address");
  Card card;
  card.abilities = static_cast<std::uint8_t>(bytes[2]);
  card.protocol = number_at(bytes, 3);
  card.protocol_version = number_at(bytes, 7);
  for (const std::byte byte : bytes.subspan(kHeadBytes, name)) {
    const char character = static_cast<char>(byte);
    if (character <= ' ' || character > '~') refuse("names a provider with a name that is none");
    card.provider += character;
  }
  const auto address = bytes.subspan(kHeadBytes + name);
  card.address.assign(address.begin(), address.end());
  return card;
}

}  // namespace unisono::ofi
