// torchrun: where the ranks that it starts meet, if nobody says it and its store is not handed over.
#pragma once

#include <string>

#include "platform/join/job.hpp"

namespace unisono::join {

/// Fills in where the ranks meet: `secret_given` says whether the user has told a secret. Without one the ranks of one
/// host meet by a file of rank 0's, which alone is read by their user; those of several hosts cannot meet. With one
/// they meet at MASTER_ADDR, on the port of UNISONO_PORT, or of MASTER_PORT and kTorchrunStep. Throws
/// Error(kBootstrap).
void meet_by_torchrun(JobEnvironment& environment, bool secret_given);

/// What proves who belongs to this run: of the user's secret, which another run may have as well, and the run's name.
std::string secret_of_run(const std::string& secret);

/// From torchrun's port, on which its own store listens, to ours: upwards, or downwards where ports end.
inline constexpr std::uint16_t kTorchrunStep = 1000;

}  // namespace unisono::join
