// A switch of the simulated network in hardware: the Verilated unit of rtl/switch between the network's frames.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/switch/aggregation_unit.hpp"

namespace unisono::sim {

/// A unit in a switch, or at a node. Each neighbour of a communicator that it carries, a rank or a switch, has one of
/// its SwitchModel::kPorts ports, by whatever link it is reached. Words go into the hardware as they come, and onto the
/// link as they come out; several that are behind one link take turns there, by frames. A node's frames leave when they
/// are whole.
std::unique_ptr<AggregationUnit> make_rtl_switch(Network& network, std::uint32_t unit);

}  // namespace unisono::sim
