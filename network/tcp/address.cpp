#include "network/tcp/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/text.hpp"

namespace unisono::tcp {

bool Address::loopback() const {
  if (!six) return bytes[0] == 127;
  return bytes[15] == 1 && std::all_of(bytes.begin(), bytes.begin() + 15, [](std::uint8_t b) { return b == 0; });
}

bool Address::unspecified() const {
  return std::all_of(bytes.begin(), bytes.begin() + length(), [](std::uint8_t b) { return b == 0; });
}

std::string text_without_port(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(address.six ? AF_INET6 : AF_INET, address.bytes.data(), text.data(), text.size());
  if (address.interface.empty()) return text.data();
  return formatted("{}%{}", text.data(), address.interface);
}

std::string text_of(const Address& address) {
  return address.six ? formatted("[{}]:{}", text_without_port(address), address.port)
                     : formatted("{}:{}", text_without_port(address), address.port);
}

namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

/// An address without its port.
std::optional<Address> parse_bare(std::string_view text, bool six) {
  Address address;
  address.six = six;
  if (const auto percent = text.find('%'); percent != std::string_view::npos) {
    address.interface = text.substr(percent + 1);
    text = text.substr(0, percent);
    if (!is_interface_name(address.interface)) return std::nullopt;
  }
  if (inet_pton(six ? AF_INET6 : AF_INET, std::string(text).c_str(), address.bytes.data()) != 1) return std::nullopt;
  if (!address.interface.empty() && !address.link_local()) return std::nullopt;
  return address;
}

}  // namespace

bool is_interface_name(std::string_view name) {
  const auto fits_in = [](char c) {
    return c > ' ' && c < 0x7f && std::string_view("/%:[]").find(c) == std::string_view::npos;
  };
  return !name.empty() && name.size() < IF_NAMESIZE && std::all_of(name.begin(), name.end(), fits_in);
}

std::optional<Address> parse_address(std::string_view text) {
  const auto with_port = [&](std::string_view bare, bool six, std::string_view port) {
    auto address = parse_bare(bare, six);
    const auto number = parse_port(port);
    if (!address || !number) return std::optional<Address>{};
    address->port = *number;
    return address;
  };
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const auto bare = text.substr(1, end - 1);
    const auto rest = text.substr(end + 1);
    if (rest.empty()) return parse_bare(bare, true);
    return rest[0] == ':' ? with_port(bare, true, rest.substr(1)) : std::nullopt;
  }
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return parse_bare(text, false);
  // Two colons without brackets: an IPv6 address, which then has no port.
  if (text.find(':', colon + 1) != std::string_view::npos) return parse_bare(text, true);
  return with_port(text.substr(0, colon), false, text.substr(colon + 1));
}

SystemAddress system_address(const Address& address, unsigned scope) {
  SystemAddress result;
  if (address.six) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(address.port);
    six.sin6_scope_id = scope;
    std::memcpy(&six.sin6_addr, address.bytes.data(), 16);
    std::memcpy(&result.storage, &six, sizeof six);
    result.bytes = sizeof six;
  } else {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(address.port);
    std::memcpy(&four.sin_addr, address.bytes.data(), 4);
    std::memcpy(&result.storage, &four, sizeof four);
    result.bytes = sizeof four;
  }
  return result;
}

SystemAddress system_address_for_six(const Address& address, unsigned scope) {
  if (address.six) return system_address(address, scope);
  Address mapped;
  mapped.six = true;
  mapped.port = address.port;
  mapped.bytes[10] = mapped.bytes[11] = 0xff;
  std::copy_n(address.bytes.begin(), 4, mapped.bytes.begin() + 12);
  return system_address(mapped, 0);
}

std::optional<Address> address_of(const sockaddr_storage& storage) {
  Address address;
  if (storage.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &storage, sizeof four);
    std::memcpy(address.bytes.data(), &four.sin_addr, 4);
    address.port = ntohs(four.sin_port);
    return address;
  }
  if (storage.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 six{};
  std::memcpy(&six, &storage, sizeof six);
  address.port = ntohs(six.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    std::memcpy(address.bytes.data(), &six.sin6_addr.s6_addr[12], 4);
    return address;
  }
  address.six = true;
  std::memcpy(address.bytes.data(), &six.sin6_addr, 16);
  if (address.link_local() && six.sin6_scope_id != 0) {
    std::array<char, IF_NAMESIZE> name{};
    if (if_indextoname(six.sin6_scope_id, name.data()) != nullptr) address.interface = name.data();
  }
  return address;
}

Address local_address(int socket) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return {};
  return address_of(storage).value_or(Address{});
}

Address remote_address(int socket) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return {};
  return address_of(storage).value_or(Address{});
}

}  // namespace unisono::tcp
