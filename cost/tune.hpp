// From a machine to the rules by which algorithms are chosen on it.
#pragma once

#include <functional>
#include <vector>

#include "collectives/tuning.hpp"
#include "cost/machine.hpp"

namespace unisono::cost {

/// Rules for the collectives that shared memory carries, for jobs of 2 to `most_ranks` ranks. Where the built-in choice
/// is within a few percent of the best prediction, it stays, and where it always is, there is no rule at all.
std::vector<Rule> tune(const Machine& machine, std::uint32_t most_ranks);

/// Rules for communicators over several hosts that are such machines, likewise: for one rank on each host, and for
/// several.
std::vector<Rule> tune_hosts(const Machine& machine, const Network& network, std::uint32_t most_ranks);

/// `machine` with the network that a communicator of that many ranks has, and as many cores as its job finds.
Machine for_ranks(Machine machine, std::uint32_t ranks, bool crowded);

/// Likewise of a communicator whose ranks are on these hosts, by rank.
Machine for_hosts(Machine machine, const Network& network, std::vector<std::uint32_t> host_of);

}  // namespace unisono::cost
