// Jobs whose endpoints talk by UDP on the loopback, through a network as bad as a test wants it.
#pragma once

#include <memory>
#include <string>

#include "network/udp/udp_network.hpp"
#include "tests/cpp/network/network_job.hpp"

namespace unisono::test {

inline udp::UdpSettings udp_loopback(const std::string& impairment = {}) {
  udp::UdpSettings settings;
  settings.interfaces = "lo";
  settings.impairment = udp::impairment_of(impairment);
  return settings;
}

struct UdpJob : NetworkJob<udp::UdpNetwork> {
  explicit UdpJob(std::uint32_t size, const udp::UdpSettings& settings = udp_loopback())
      : NetworkJob(size, [&](std::uint32_t endpoint) {
          udp::UdpSettings own = settings;
          own.impairment.seed += endpoint;
          return std::make_unique<udp::UdpNetwork>(own);
        }) {}
};

}  // namespace unisono::test
