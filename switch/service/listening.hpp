// Where a switch takes what comes: at one address of this machine, or at all of them.
#pragma once

#include <string>

#include "network/tcp/address.hpp"
#include "platform/join/sockets.hpp"

namespace unisono::slots {

/// The address at which a switch listens that is told to listen at HOST:PORT: the one that HOST is in numbers, or is of
/// the loopback; else none in particular, for a name may have several. Throws Error(kBootstrap) if there is no such
/// host.
tcp::Address place_to_listen(const join::HostPort& where);

/// Listens for connections there, at port 0 for any. Throws Error(kBootstrap), which names `where`, if this machine has
/// no such address, or somebody else has the port.
join::Descriptor listen_for_callers(const tcp::Address& at, const std::string& where);

/// Throws Error(kInvalidArgument) if what is sent from there, which switches do where they listen, never gets to the
/// switch above.
void check_uplink(const tcp::Address& at, const join::HostPort& uplink);

}  // namespace unisono::slots
