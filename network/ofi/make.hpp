// Whether there is libfabric, and a network over it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "network/network.hpp"

namespace unisono::ofi {

/// Where nobody has measured: what two frames carry. Shorter messages have frames anyway.
inline constexpr std::uint64_t kRegisterFrom = std::uint64_t{64} * 1024;
/// No length: it never is.
inline constexpr std::uint64_t kNeverRegistered = ~std::uint64_t{0};

/// What a person may choose.
struct OfiSettings {
  /// Its name, as `fi_info -l` tells it, such as "verbs;ofi_rxm" or "shm"; empty: the best that is known to work.
  std::string provider;
  /// Own address by which peers may reach this host, as text without a port; for providers that have such addresses.
  std::string source;
  /// Memory that may be freed unseen is registered for messages of so many bytes or more, each time; shorter ones are
  /// copied on both sides. Lasting memory is registered once, whatever the length.
  std::uint64_t register_from = kRegisterFrom;
  /// A peer that was never reached is called again for so long, if there is no way to it.
  std::chrono::milliseconds patience = std::chrono::seconds(3);
};

/// A network whose endpoint can be reached from here on. Throws Error(kBootstrap) that says what is missing.
std::unique_ptr<Network> make_network(const OfiSettings& settings);

/// Providers that offer what this network needs, each once, best first. Throws Error(kBootstrap) if there is no
/// libfabric.
std::vector<std::string> providers();

}  // namespace unisono::ofi
