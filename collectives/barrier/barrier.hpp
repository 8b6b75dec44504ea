// The algorithms of barrier; each in a file of its own.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"

namespace unisono::collectives {

std::uint32_t barrier_dissemination_steps(const Call& call);
void barrier_dissemination_step(const Call& call, std::uint32_t s, Emit& emit);

inline constexpr std::array<Algorithm, 1> kBarrier{{
    {.collective = Collective::kBarrier,
     .name = "dissemination",
     .source = "Hensgen, Finkel and Manber, IJPP 1988",
     .restriction = "",
     .cost = "ceil(log2 P) alpha",
     .summary = "In round k each rank signals the rank 2^k to its right, once it has heard from all rounds before.",
     .ordered = true,
     .steps = barrier_dissemination_steps,
     .step = barrier_dissemination_step},
}};

}  // namespace unisono::collectives
