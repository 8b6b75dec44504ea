// Whether there is libfabric, and a network over it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "network/network.hpp"

namespace unisono::ofi {

/// What a person may choose.
struct OfiSettings {
  /// Its name, as `fi_info -l` tells it, such as "verbs;ofi_rxm" or "shm"; empty: the best that is known to work.
  std::string provider;
  /// Own address by which peers may reach this host, as text without a port; for providers that have such addresses.
  std::string source;
  /// A peer that was never reached is called again for so long, if there is no way to it.
  std::chrono::milliseconds patience = std::chrono::seconds(3);
};

/// A network whose endpoint can be reached from here on. Throws Error(kBootstrap) that says what is missing.
std::unique_ptr<Network> make_network(const OfiSettings& settings);

/// Providers that offer what this network needs, each once, best first. Throws Error(kBootstrap) if there is no
/// libfabric.
std::vector<std::string> providers();

}  // namespace unisono::ofi
