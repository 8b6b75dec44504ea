#include "network/tcp/card.hpp"

#include <net/if.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/network.hpp"

namespace unisono::tcp {

namespace {

// Version, number of addresses with a bit for TLS, port (low byte first); then for each address its kind, its bytes,
// and for a link-local one the length of its interface's name and the name.
enum class Kind : std::uint8_t { kFour = 4, kSix = 6, kLinkLocal = 7 };
constexpr std::size_t kHeadBytes = 4;
constexpr std::uint8_t kTls = 0x80;

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::kBootstrap, text); }

/// Takes bytes from the front.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::span<const std::byte> take(std::size_t count) {
    if (count > rest_.size()) refuse("ends within an address");
    const auto piece = rest_.first(count);
    rest_ = rest_.subspan(count);
    return piece;
  }
  std::uint8_t take_byte() { return static_cast<std::uint8_t>(take(1)[0]); }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

std::vector<std::byte> encode_card(const Card& card, std::size_t most_bytes) {
  std::vector<std::byte> bytes(kHeadBytes);
  std::uint8_t count = 0;
  for (const Address& address : card.addresses) {
    const bool local = address.link_local();
    if (local && !is_interface_name(address.interface)) continue;
    const std::size_t need = 1 + address.length() + (local ? 1 + address.interface.size() : 0);
    if (count == kMostAddresses || bytes.size() + need > most_bytes) break;
    bytes.push_back(static_cast<std::byte>(!address.six ? Kind::kFour : local ? Kind::kLinkLocal : Kind::kSix));
    for (unsigned i = 0; i < address.length(); ++i) bytes.push_back(std::byte{address.bytes[i]});
    if (local) {
      bytes.push_back(static_cast<std::byte>(address.interface.size()));
      for (const char c : address.interface) bytes.push_back(static_cast<std::byte>(c));
    }
    ++count;
  }
  bytes[0] = std::byte{kCardVersion};
  bytes[1] = static_cast<std::byte>(count | (card.tls ? kTls : 0U));
  bytes[2] = static_cast<std::byte>(card.port & 0xffU);
  bytes[3] = static_cast<std::byte>(card.port >> 8U);
  return bytes;
}

Card decode_card(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeadBytes || bytes.size() > kMostBytesOfCard) {
    refuse(formatted("has {} bytes; allowed are {} to {}", bytes.size(), kHeadBytes, kMostBytesOfCard));
  }
  Reader reader(bytes);
  if (const unsigned version = reader.take_byte(); version != kCardVersion) {
    refuse(formatted("is of version {}, this library reads {}", version, unsigned{kCardVersion}));
  }
  const unsigned count_and_tls = reader.take_byte();
  const std::size_t count = count_and_tls & ~unsigned{kTls};
  if (count == 0 || count > kMostAddresses) {
    refuse(formatted("names {} addresses; allowed are 1 to {}", count, kMostAddresses));
  }
  Card card;
  card.tls = (count_and_tls & kTls) != 0;
  card.port = reader.take_byte();
  card.port = static_cast<std::uint16_t>(card.port | (unsigned{reader.take_byte()} << 8U));
  if (card.port == 0) refuse("names port 0");
  for (std::size_t i = 0; i < count; ++i) {
    Address address;
    address.port = card.port;
    const auto kind = static_cast<Kind>(reader.take_byte());
    if (kind != Kind::kFour && kind != Kind::kSix && kind != Kind::kLinkLocal) {
      refuse(formatted("has an address of the unknown kind {}", static_cast<unsigned>(kind)));
    }
    address.six = kind != Kind::kFour;
    const auto raw = reader.take(address.length());
    std::memcpy(address.bytes.data(), raw.data(), raw.size());
    if (address.link_local() != (kind == Kind::kLinkLocal)) refuse("has an address that does not fit its kind");
    if (kind == Kind::kLinkLocal) {
      const auto name = reader.take(reader.take_byte());
      for (const std::byte b : name) address.interface.push_back(static_cast<char>(b));
      if (!is_interface_name(address.interface)) refuse("has an interface whose name is none");
    }
    if (address.unspecified()) refuse("has an address of zeros only");
    card.addresses.push_back(address);
  }
  if (!reader.empty()) refuse("goes on after its last address");
  return card;
}

}  // namespace unisono::tcp
