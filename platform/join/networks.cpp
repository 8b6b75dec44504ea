#include "platform/join/networks.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "network/tcp/tcp_network.hpp"
#include "network/udp/udp_network.hpp"
#include "network/ways.hpp"
#include "platform/join/ofi.hpp"
#include "platform/join/variables.hpp"

namespace unisono::join {

namespace {

std::unique_ptr<Network> make_udp(const JobEnvironment& environment, const std::optional<tcp::Address>& towards) {
  udp::UdpSettings settings;
  settings.interfaces = environment.interfaces;
  settings.towards = towards;
  settings.impairment = udp::impairment_of(variable("UNISONO_UDP_IMPAIR").value_or(""));
  return std::make_unique<udp::UdpNetwork>(settings);
}

}  // namespace

std::unique_ptr<Network> make_network(const JobEnvironment& environment) {
  tcp::TcpSettings settings;
  settings.interfaces = environment.interfaces;
  settings.patience = environment.host_timeout;
  settings.tls = environment.tls != Encryption::kNone;
  settings.connections = environment.tcp_connections.value_or(1);
  if (!environment.addresses.empty()) {
    settings.towards =
        tcp::parse_address(numeric_text_of(environment.addresses.front(), Clock::now() + environment.timeout));
  }
  auto lifeline = std::make_unique<tcp::TcpNetwork>(settings);
  const std::vector<std::string>& names = environment.transports;
  // TCP reaches whom its lifeline reaches: what comes after it would never be asked.
  const auto end = std::find(names.begin(), names.end(), "tcp");
  std::vector<std::unique_ptr<Network>> others;
  std::vector<std::string> order;
  for (auto name = names.begin(); name != end; ++name) {
    if (std::find(order.begin(), order.end(), *name) != order.end()) continue;
    others.push_back(*name == "udp" ? make_udp(environment, settings.towards) : make_ofi(environment));
    order.push_back(*name);
  }
  if (end != names.end()) order.emplace_back("tcp");
  if (others.empty()) return lifeline;
  return std::make_unique<Ways>(std::move(lifeline), std::move(others), order);
}

}  // namespace unisono::join
