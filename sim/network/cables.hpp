// Cables between nodes: what a configuration says of them. What carries frames over them is sim/carrier/cables.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/network/carrier.hpp"
#include "sim/network/config.hpp"
#include "sim/network/rate.hpp"

namespace unisono::sim {

/// Every cable, in each direction.
struct CableSettings {
  std::uint32_t propagation = 50;  ///< cycles from when a word is sent to its arrival; at least 1
  Rate rate;                       ///< that the wire carries; a word per cycle at most
};

/// What `gbps`, `propagation` and `clock_mhz` say. Throws Error(kInvalidArgument) that names the line for one that
/// means nothing to cables, or another topology.
CableSettings cables_of(const NetworkConfig& config);

/// Nodes on cables, as the routes in this folder have them (sim/carrier/cables.hpp). Throws Error(kInvalidArgument)
/// that says what is wrong with configuration or routes, Error(kUnsupported) where no transport was compiled by
/// Verilator.
std::unique_ptr<Carrier> make_cables(const std::string& routes, const NetworkConfig& config);
/// Throws what `make_cables` would, and makes nothing.
void check_cables(const std::string& routes, const NetworkConfig& config);

}  // namespace unisono::sim
