// The algorithms of all-reduce; each in a file of its own.
#pragma once

#include "collectives/algorithm.hpp"

namespace unisono::collectives {

std::uint32_t allreduce_ring_steps(const Call& call);
void allreduce_ring_step(const Call& call, std::uint32_t s, Emit& emit);

}  // namespace unisono::collectives
