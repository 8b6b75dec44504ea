// LogGP (Alexandrov et al., 1995) of a call: its programs' messages, each with o, L, g and G, and no network between
// them.
#pragma once

#include "sim/price/parameters.hpp"
#include "sim/price/ways.hpp"

namespace unisono::sim {

/// Cycles until the last rank has its answer. No algorithm has a formula of its own: the moves of all ranks are walked
/// in the order of their times, each message takes o at both ends, g and G where it leaves and where it comes, and L
/// between. Links within the network carry any number of messages at once. For calls of ranks; `logcn` is for switches.
/// Throws Error(kUnsupported) if programs wait for one another.
double loggp(const Ways& ways, const ModelledCall& call, const Parameters& parameters, const EndpointCosts& engine);

}  // namespace unisono::sim
