// Which trees of units engines in hardware, and switches in hardware, can use.
#pragma once

#include <cstdint>
#include <string>

#include "core/tree.hpp"
#include "sim/network/unit_tree.hpp"

namespace unisono::sim {

/// Addresses that an engine in hardware reaches, and rows of its table for a communicator.
inline constexpr std::uint32_t kEngineAddresses = 64;
/// Ports of a switch in hardware, one for each neighbour.
inline constexpr std::uint32_t kHardwareSwitchPorts = 8;

/// Why engines cannot use the tree, a sentence; empty: they can. `tree` is what `laid.text` says.
std::string why_not_by_engines(const Topology& topology, const UnitTree& laid, const CallTree& tree);

}  // namespace unisono::sim
