// Which engine an endpoint has, and how it joins its job with it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "driver/objects.hpp"
#include "platform/join/job.hpp"

namespace unisono::driver {

/// The platform of this process: UNISONO_PLATFORM (native, functional, rtl). Throws Error(kBootstrap) for other values.
Platform platform_of_process();

/// Settings of a context on a platform that were not given.
EngineSettings default_settings(Platform platform);

/// Joins the job that is described, mostly by the environment. Collective over the job. Throws Error.
std::shared_ptr<Context> join_as_process(Platform platform, const EngineSettings& settings,
                                         const JobEnvironment& environment = JobEnvironment::from_environment());
/// Joins a job of threads as one rank. Throws Error.
std::shared_ptr<Context> join_as_thread(Platform platform, const EngineSettings& settings, SharedJob& job,
                                        std::uint32_t rank);

}  // namespace unisono::driver
