// From a tree to what a switch in hardware is told of it.
#pragma once

#include <functional>

#include "sim/switch/switch_communicator.hpp"
#include "sim/switch_rtl/switch_model.hpp"

namespace unisono::sim {

/// `port_of`: the port by which a neighbour is reached, by its address. Throws Error(kInvalidArgument) with a reason if
/// the hardware cannot serve it: several neighbours behind one port, ports that do not follow the order of the tree,
/// lengths or credit beyond its buffers.
UnitTerms unit_terms(const SwitchEntry& entry, const std::function<std::uint32_t(std::uint32_t)>& port_of);

}  // namespace unisono::sim
