// Measuring the machine: what `unisono calibrate` does.
#pragma once

#include <cstdint>

#include "cost/tuning_file.hpp"

namespace unisono::driver {

/// Measures the times of cost::Machine on the cores that the calling thread may use, by loops of a few seconds
/// altogether, and makes rules for jobs of up to `most_ranks` ranks. Every figure is the best of several short blocks,
/// so that what else runs disturbs it little. Throws Error.
cost::TuningFile calibrate(std::uint32_t most_ranks);

/// Cores for ranks: what the calling thread may use, within the quota.
std::uint32_t cores_for_ranks();

}  // namespace unisono::driver
