// Measures what a machine does faster with ordinary buffers: see copy_class.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/generated/spec.hpp"

namespace unisono::cclo {

/// One collective of two ranks, run both ways; the best times of some repetitions.
struct CopyTimes {
  Collective collective = Collective::kNop;
  std::uint64_t bytes = 0;  ///< of the vector or block
  double kernel_us = 0;     ///< by direct access through the kernel
  double cells_us = 0;      ///< over lanes
};

/// Runs bcast, allgather and allreduce, 16 KiB to 1 MiB, in this process and a child that it makes for this and ends.
/// Takes at most 50 ms if nothing disturbs it. Empty if there is no second process or no memory to be had, or the child
/// does not get along.
std::optional<std::vector<CopyTimes>> probe_copies();

}  // namespace unisono::cclo
