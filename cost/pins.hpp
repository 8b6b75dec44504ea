// What a user pins: the text of UNISONO_ALGORITHM (docs/tuning.md).
#pragma once

#include <string_view>
#include <vector>

#include "collectives/tuning.hpp"

namespace unisono::cost {

/// "allreduce=ring,bcast=knomial:8:64K-" as rules: collective=algorithm, with its radix or the usual one, for all sizes
/// or those of a range A-B, A- or -B, both included, in bytes with K, M or G. The first that fits a call decides; where
/// its algorithm does not admit the call, the choice is as without it. Throws Error(kInvalidArgument or
/// kUnknownAlgorithm).
std::vector<Rule> parse_pins(std::string_view text);

}  // namespace unisono::cost
