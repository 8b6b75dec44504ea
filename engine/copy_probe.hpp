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
/// Takes some 40 ms, at most 80. Empty if there is no second process or no memory to be had, or others need the cores.
std::optional<std::vector<CopyTimes>> probe_copies();

/// Nanoseconds that a cache line takes from one process to another now, the best of some hundred; in about 1 ms, at
/// most 8. A virtual machine's cores may be close to each other in one minute and far apart in the next. Empty as
/// above.
std::optional<double> probe_line();

}  // namespace unisono::cclo
