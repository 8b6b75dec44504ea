// Looks at jobs: that of a context, or, from outside, those of any process of the same user.
#pragma once

#include <cstdint>
#include <string>

#include "network/poe.hpp"

namespace unisono::driver {

/// What is told of a job; the values are those of the C interface.
enum class Observation : std::uint8_t { kNow = 0, kHistory = 1, kTable = 2 };

/// About the job that `poe` belongs to.
std::string observe(const Poe& poe, Observation what);

/// About the jobs of process `pid`. It need not answer: the memory of its jobs is read. Throws
/// Error(kInvalidArgument) if there is no such process, it may not be looked at, or has no job.
std::string observe_process(std::uint32_t pid, Observation what);

}  // namespace unisono::driver
