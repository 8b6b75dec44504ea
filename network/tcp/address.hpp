// Where a socket is: an IPv4 or IPv6 address with a port.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unisono::tcp {

/// An address of the internet. IPv4 takes the first four bytes.
struct Address {
  bool six = false;
  std::array<std::uint8_t, 16> bytes{};
  std::uint16_t port = 0;
  /// Of a link-local IPv6 address: the interface it belongs to, as the host that has the address calls it.
  std::string interface;

  unsigned length() const { return six ? 16 : 4; }
  bool loopback() const;
  /// fe80::/10: means something only together with an interface.
  bool link_local() const { return six && bytes[0] == 0xfe && (bytes[1] & 0xc0U) == 0x80; }
  bool unspecified() const;
  friend bool operator==(const Address&, const Address&) = default;
};

/// Whether an interface may have this name in a card and in text: printable, and without what ends it in an address.
/// The system allows more, such as brackets; link-local addresses of interfaces with such names are not offered.
bool is_interface_name(std::string_view name);

/// "10.0.0.1:4711", "[fe80::1%eth0]:4711".
std::string text_of(const Address& address);
/// The same without the port: "10.0.0.1", "fe80::1%eth0".
std::string text_without_port(const Address& address);
/// The address that `text` names, in the form of either function; nothing if it names none. Names of hosts are not
/// looked up.
std::optional<Address> parse_address(std::string_view text);

/// As the system's calls take it, and give it.
struct SystemAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
/// `scope` is the interface's number here for a link-local address, else 0.
SystemAddress system_address(const Address& address, unsigned scope);
/// The same as a socket of IPv6 takes it that is for IPv4, too.
SystemAddress system_address_for_six(const Address& address, unsigned scope);
/// IPv4 addresses that come in the form of IPv6 are IPv4 ones here. Nothing for another family.
std::optional<Address> address_of(const sockaddr_storage& storage);

/// The two ends of a connection; unspecified ones if it has ended.
Address local_address(int socket);
Address remote_address(int socket);

}  // namespace unisono::tcp
