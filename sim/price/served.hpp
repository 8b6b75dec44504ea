// Whether the switches of a network would serve the communicator of all ranks of a job, as who manages them decides
// (sim/switch/aggregation.cpp, sim/switch_rtl/unit_terms.cpp).
#pragma once

#include <cstdint>
#include <string>

#include "core/tree.hpp"
#include "sim/network/topology.hpp"

namespace unisono::sim {

/// The tree of the first ranks of a network.
struct Served {
  const CallTree* tree = nullptr;  ///< null: there is none, not even for the model
  std::string text;                ///< the tree in brackets
  std::string reason;              ///< why no job gets it; empty: a job does
};

/// Of the ranks at nodes 0 to `ranks` - 1, the first communicator of its switches. `hardware`: these are in RTL.
Served served(const Topology& topology, std::uint32_t ranks, bool hardware);

}  // namespace unisono::sim
