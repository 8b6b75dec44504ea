// Jobs whose endpoints talk by TCP on the loopback.
#pragma once

#include <functional>
#include <memory>

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

}  // namespace unisono::test
