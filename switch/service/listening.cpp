#include "switch/service/listening.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/tcp/interfaces.hpp"
#include "network/tcp/socket.hpp"

namespace unisono::slots {

namespace {

using join::Clock;
using join::Descriptor;

/// How long the look-up of a name may take.
constexpr std::chrono::seconds kToFind{5};

bool in_numbers(const std::string& host) {
  return host.find_first_not_of("0123456789.") == std::string::npos || host.find(':') != std::string::npos;
}

}  // namespace

tcp::Address place_to_listen(const join::HostPort& where) {
  const std::optional<tcp::Address> found = tcp::parse_address(join::numeric_text_of(where, Clock::now() + kToFind));
  if (!found) {
    throw Error(ErrorCode::kBootstrap,
                formatted("the switch cannot listen at {}: that is no address of this machine", where.text()));
  }
  const bool one = !found->unspecified() && (found->loopback() || in_numbers(where.host));
  return one ? *found : tcp::Address{.six = true, .bytes = {}, .port = where.port, .interface = {}};
}

Descriptor listen_for_callers(const tcp::Address& at, const std::string& where) {
  tcp::Address address = at;
  const int on = 1;
  const int off = 0;
  for (;;) {
    const int family = address.six ? AF_INET6 : AF_INET;
    Descriptor listener(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (listener.valid()) {
      setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      if (address.six) setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      const tcp::SystemAddress own = tcp::system_address(address, tcp::scope_of_own(address));
      if (bind(listener.get(), own.get(), own.bytes) == 0 && listen(listener.get(), SOMAXCONN) == 0) return listener;
    }
    const int fault = errno;
    const auto fail = [&](const std::string& why) {
      throw Error(ErrorCode::kBootstrap, formatted("the switch cannot listen at {}: {}", where, why));
    };
    if (fault == EADDRINUSE) {
      fail(formatted("another process of this host has port {}; end it, or choose another port", at.port));
    }
    if (fault == EADDRNOTAVAIL) {
      fail("no interface of this machine has this address; name one that it has, or listen at all of them: 0.0.0.0");
    }
    if (!at.unspecified() || !address.six) fail(tcp::text_of_error(fault));
    address.six = false;  // a system without IPv6
  }
}

void check_uplink(const tcp::Address& at, const join::HostPort& uplink) {
  if (at.unspecified()) return;
  std::optional<tcp::Address> above;
  try {
    above = tcp::parse_address(join::numeric_text_of(uplink, Clock::now() + kToFind));
  } catch (const Error&) {
    return;  // it is tried again and again
  }
  if (!above || (above->six == at.six && (above->loopback() || !at.loopback()))) return;
  throw Error(ErrorCode::kInvalidArgument,
              formatted("the switch: from {}, where alone it listens, its uplink {} cannot be reached; listen at an "
                        "address that it can be reached from, or at all of them: 0.0.0.0",
                        tcp::text_without_port(at), uplink.text()));
}

}  // namespace unisono::slots
