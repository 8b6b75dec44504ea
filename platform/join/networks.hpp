// The networks between hosts that a job may take.
#pragma once

#include <memory>

#include "network/network.hpp"
#include "platform/join/job.hpp"

namespace unisono::join {

/// Those that the environment allows: TCP alone, or Ways with TCP as the lifeline. Throws Error(kBootstrap).
std::unique_ptr<Network> make_network(const JobEnvironment& environment);

}  // namespace unisono::join
