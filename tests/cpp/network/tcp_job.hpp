// Jobs whose endpoints talk by TCP on the loopback.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>

#include "network/tcp/address.hpp"
#include "network/tcp/socket.hpp"
#include "network/tcp/tcp_network.hpp"
#include "tests/cpp/network/network_job.hpp"

namespace unisono::test {

/// The loopback alone: other interfaces of the machine that tests run on are none of their business.
inline tcp::TcpSettings loopback() {
  tcp::TcpSettings settings;
  settings.interfaces = "lo";
  return settings;
}

/// The same, with all that goes over it encrypted.
inline tcp::TcpSettings encrypted() {
  tcp::TcpSettings settings = loopback();
  settings.tls = true;
  return settings;
}

struct TcpJob : NetworkJob<tcp::TcpNetwork> {
  explicit TcpJob(std::uint32_t size, const tcp::TcpSettings& settings = loopback())
      : NetworkJob(size, [&](std::uint32_t) { return std::make_unique<tcp::TcpNetwork>(settings); }) {}
};

/// Runs `body(poe)` in a thread for each endpoint, as NetworkJob::on_all.
inline void on_all_by_tcp(std::uint32_t size, const std::function<void(Poe&)>& body,
                          const std::function<void(TcpJob&)>& meanwhile = {},
                          const tcp::TcpSettings& settings = loopback()) {
  TcpJob job(size, settings);
  job.on_all(body, [&] {
    if (meanwhile) meanwhile(job);
  });
}

/// A connection to a network, made as anybody can make it.
inline tcp::Socket connected(std::uint16_t port) {
  tcp::Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  tcp::Address there;
  there.bytes = {127, 0, 0, 1};
  there.port = port;
  const auto system = tcp::system_address(there, 0);
  if (connect(socket.get(), system.get(), system.bytes) != 0) throw std::runtime_error("cannot connect");
  return socket;
}

}  // namespace unisono::test
