// What the settings of a network amount to: those that do nothing, and those by which frames are lost.
#pragma once

#include <string>
#include <vector>

#include "sim/network/config.hpp"
#include "sim/network/topology.hpp"

namespace unisono::sim {

/// Throws Error(kInvalidArgument) for a line of the text that changes nothing in this network; names the line, and
/// what it would take.
void refuse_idle_settings(const NetworkConfig& config, const Topology& topology);

/// Keys of the faults that some link has: loss, duplicate, reorder, corrupt, down.
std::vector<std::string> faults_of(const Topology& topology);

}  // namespace unisono::sim
