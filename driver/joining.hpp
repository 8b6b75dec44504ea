// Jobs whose processes find each other by functions of the program's.
#pragma once

#include "driver/include/unisono/unisono.h"
#include "platform/join/job.hpp"

namespace unisono::driver {

/// The job that they describe. Throws Error(kInvalidArgument) if they are not whole.
JobEnvironment job_of(const unisono_join_functions& functions);

}  // namespace unisono::driver
