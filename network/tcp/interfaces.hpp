// Which of the host's own addresses peers are to use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "network/tcp/address.hpp"

namespace unisono::tcp {

/// An address that this host has, and the interface that has it.
struct OwnAddress {
  std::string interface;
  Address address;  ///< its port is 0
  friend bool operator==(const OwnAddress&, const OwnAddress&) = default;
};

/// The addresses of all interfaces that are up. Throws Error(kBootstrap) if the system does not tell.
std::vector<OwnAddress> own_addresses();

/// Of `all`, those that `list` allows: names of interfaces, `!names`, and networks such as 10.0.0.0/8 or fd00::/16,
/// several by commas. An address is taken if an entry without `!` fits it, or there is none without, and no entry
/// with `!` fits it. Throws Error(kBootstrap) for an entry that fits nothing, and if nothing is left; both name the
/// interfaces there are.
std::vector<OwnAddress> chosen_by(std::string_view list, const std::vector<OwnAddress>& all);

/// In the order in which peers are to try them: those of the interface that has `route` (the address by which this
/// host reaches the rendezvous), then the others, IPv4 before IPv6, loopback ones last. Link-local ones come just
/// before those, for they mean something on one link only.
std::vector<OwnAddress> in_order(std::vector<OwnAddress> addresses, const Address* route);

/// The own address from which packets to `towards` would go; unspecified if there is no route. Sends nothing.
Address route_to(const Address& towards);

/// The number of the interface here through which a peer's link-local address is to be reached: the interface of the
/// same name, else any that has a link-local address. 0 if there is none.
unsigned scope_for(const Address& address, const std::vector<OwnAddress>& all);
/// What an own address is bound with: the number of its interface if it is link-local, else 0.
unsigned scope_of_own(const Address& address);

}  // namespace unisono::tcp
