#include "network/tcp/interfaces.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/tcp/socket.hpp"

namespace unisono::tcp {

std::vector<OwnAddress> own_addresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    throw Error(ErrorCode::kBootstrap,
                formatted("the system does not tell this host's addresses: {}", text_of_error(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  std::vector<OwnAddress> result;
  for (const ifaddrs* next = first; next != nullptr; next = next->ifa_next) {
    if (next->ifa_addr == nullptr || (next->ifa_flags & IFF_UP) == 0) continue;
    const int family = next->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    sockaddr_storage storage{};
    std::memcpy(&storage, next->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    auto address = address_of(storage);
    if (!address) continue;
    if (address->link_local()) address->interface = next->ifa_name;
    result.push_back({next->ifa_name, *address});
  }
  return result;
}

namespace {

std::string text_of_all(const std::vector<OwnAddress>& all) {
  std::string text;
  for (const OwnAddress& own : all) {
    if (!text.empty()) text += ", ";
    text += own.interface + " (" + text_without_port(own.address) + ")";
  }
  return text.empty() ? "none" : text;
}

/// One entry of a list.
struct Entry {
  bool without = false;
  std::string_view name;           ///< of an interface, if there is no network
  std::optional<Address> network;  ///< the first `bits` bits count
  unsigned bits = 0;

  bool fits(const OwnAddress& own) const {
    if (!network) return own.interface == name;
    if (own.address.six != network->six) return false;
    for (unsigned bit = 0; bit < bits; ++bit) {
      const unsigned differs = (own.address.bytes[bit / 8] ^ network->bytes[bit / 8]) & (0x80U >> (bit % 8));
      if (differs != 0) return false;
    }
    return true;
  }
};

Entry parse_entry(std::string_view text) {
  const std::string_view whole = text;
  Entry entry;
  if (text.starts_with('!')) {
    entry.without = true;
    text.remove_prefix(1);
  }
  entry.name = text;
  const auto slash = text.find('/');
  entry.network = parse_address(text.substr(0, slash));
  if (entry.network) entry.bits = 8 * entry.network->length();
  if (slash == std::string_view::npos) return entry;
  const auto bits = text.substr(slash + 1);
  const auto [end, fault] = std::from_chars(bits.data(), bits.data() + bits.size(), entry.bits);
  if (!entry.network || fault != std::errc{} || end != bits.data() + bits.size() ||
      entry.bits > 8 * entry.network->length()) {
    throw Error(ErrorCode::kBootstrap, formatted("\"{}\" among the interfaces to use is no network: write an address, "
                                                 "a slash and a number of bits, for instance 10.0.0.0/8",
                                                 std::string(whole)));
  }
  return entry;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<OwnAddress> chosen_by(std::string_view list, const std::vector<OwnAddress>& all) {
  std::vector<Entry> entries;
  for (std::string_view rest = list; !trimmed(rest).empty();) {
    const auto comma = rest.find(',');
    const auto text = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    if (text.empty()) continue;
    entries.push_back(parse_entry(text));
    const Entry& entry = entries.back();
    if (std::none_of(all.begin(), all.end(), [&](const OwnAddress& own) { return entry.fits(own); })) {
      throw Error(ErrorCode::kBootstrap, formatted("\"{}\" among the interfaces to use fits none of this host's: {}",
                                                   std::string(text), text_of_all(all)));
    }
  }
  const bool any_with = std::any_of(entries.begin(), entries.end(), [](const Entry& e) { return !e.without; });
  std::vector<OwnAddress> result;
  for (const OwnAddress& own : all) {
    bool taken = !any_with;
    for (const Entry& entry : entries) taken = taken || (!entry.without && entry.fits(own));
    for (const Entry& entry : entries) taken = taken && !(entry.without && entry.fits(own));
    if (taken) result.push_back(own);
  }
  if (result.empty()) {
    throw Error(ErrorCode::kBootstrap, formatted("the interfaces to use, \"{}\", leave none of this host's: {}",
                                                 std::string(list), text_of_all(all)));
  }
  return result;
}

std::vector<OwnAddress> in_order(std::vector<OwnAddress> addresses, const Address* route) {
  std::string routed;
  for (const OwnAddress& own : addresses) {
    if (route != nullptr && own.address.six == route->six && own.address.bytes == route->bytes) routed = own.interface;
  }
  const auto place = [&](const OwnAddress& own) {
    if (own.address.loopback()) return 4;
    if (own.address.link_local()) return 3;
    if (!routed.empty() && own.interface == routed) return 0;
    return own.address.six ? 2 : 1;
  };
  std::stable_sort(addresses.begin(), addresses.end(),
                   [&](const OwnAddress& one, const OwnAddress& other) { return place(one) < place(other); });
  // Where the rendezvous itself is reached by a loopback or link-local address, peers are, too.
  std::stable_sort(addresses.begin(), addresses.end(), [&](const OwnAddress& one, const OwnAddress& other) {
    const auto is_route = [&](const OwnAddress& own) {
      return route != nullptr && own.address.six == route->six && own.address.bytes == route->bytes;
    };
    return is_route(one) && !is_route(other);
  });
  return addresses;
}

Address route_to(const Address& towards) {
  const Socket probe(socket(towards.six ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return {};
  Address there = towards;
  if (there.port == 0) there.port = 9;  // any: nothing is sent
  const unsigned scope = there.interface.empty() ? 0 : if_nametoindex(there.interface.c_str());
  const SystemAddress system = system_address(there, scope);
  if (connect(probe.get(), system.get(), system.bytes) != 0) return {};
  Address own = local_address(probe.get());
  own.port = 0;
  return own;
}

unsigned scope_for(const Address& address, const std::vector<OwnAddress>& all) {
  unsigned any = 0;
  for (const OwnAddress& own : all) {
    if (!own.address.link_local()) continue;
    const unsigned number = if_nametoindex(own.interface.c_str());
    if (own.interface == address.interface) return number;
    if (any == 0) any = number;
  }
  return any;
}

unsigned scope_of_own(const Address& address) { return address.link_local() ? scope_for(address, own_addresses()) : 0; }

}  // namespace unisono::tcp
