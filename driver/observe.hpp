// Looks at jobs: that of a context, or, from outside, those of any process of the same user.
#pragma once

#include <cstdint>
#include <string>

#include "network/poe.hpp"
#include "unisono/unisono.h"

namespace unisono::driver {

/// What is told of a job; the values are those of the C interface.
enum class Observation : std::uint8_t { kNow = 0, kHistory = 1, kTable = 2, kCounters = 3 };

/// About the job that `poe` belongs to.
std::string observe(const Poe& poe, Observation what);

/// About the jobs of process `pid`. It need not answer: the memory of its jobs is read. Throws
/// Error(kInvalidArgument) if there is no such process, it may not be looked at, or has no job.
std::string observe_process(std::uint32_t pid, Observation what);

/// Asks the jobs of process `pid` to make communicators with these settings from now on: sizes and deadline; zeros
/// leave what was asked before. Throws as `observe_process`, and for settings that cannot be.
void order_settings(std::uint32_t pid, const unisono_settings& given);
/// Asks them to give up all their communicators.
void order_reset(std::uint32_t pid);

}  // namespace unisono::driver
