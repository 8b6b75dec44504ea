// A switch of the simulated network in hardware: the Verilated unit of rtl/switch between the network's frames.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/switch/aggregation_unit.hpp"

namespace unisono::sim {

/// A unit in a switch with at most SwitchModel::kPorts links, each with another switch or node at its end. Words go
/// into the hardware as they come, and onto the link as they come out.
/// Throws Error(kUnsupported) where the unit is at a node, or the switch has more links.
std::unique_ptr<AggregationUnit> make_rtl_switch(Network& network, std::uint32_t unit);

}  // namespace unisono::sim
