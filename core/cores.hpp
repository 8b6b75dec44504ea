// How many cores a set of threads, in any processes, may use at once.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace unisono {

/// A set of cores: bit i of word i / 64. Sets of different lengths may be mixed.
using CoreSet = std::vector<std::uint64_t>;

/// Where a thread may run; 0 is the calling one. Empty if it cannot be asked (it has ended, say).
CoreSet affinity_of(std::uint32_t thread);

/// How many of these sets can be given a member of their own, at the same time: the size of the largest
/// matching. Two threads bound to one core are thereby crowded, whatever is free beside it.
std::uint32_t distinct_cores(std::span<const CoreSet> sets);

/// Cores' worth of time that a cgroup grants to its processes.
struct Quota {
  double cores = std::numeric_limits<double>::infinity();  ///< infinity: no quota
  std::string file;                                        ///< where it is set; empty without
};

/// What cgroups, v2 or v1, grant this process: the least of its group and all visible ancestors. `root` stands
/// before every path that is read, for tests.
Quota cgroup_quota(const std::string& root = "");

/// How many of these threads can run at once, each on a core of its own: `distinct_cores` of their affinities,
/// limited by the quota, rounded down, but at least 1. The affinity of a thread that cannot be asked is taken to be
/// the caller's. Reads /proc and /sys: not for hot paths.
std::uint32_t seats(std::span<const std::uint32_t> threads, const std::string& root = "");

}  // namespace unisono
