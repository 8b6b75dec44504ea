// How many cores a set of processes may use at once.
#pragma once

#include <cstdint>
#include <span>

namespace unisono::shm {

/// Cores that the calling thread and the given processes may use together: the union of their
/// affinity masks, limited by this process's cgroup CPU quota (v2 or v1), rounded down but at least
/// 1. Processes that cannot be asked are left out. Reads /proc and /sys: not for hot paths.
std::uint32_t usable_cores(std::span<const std::uint32_t> processes);

}  // namespace unisono::shm
