// The algorithms of barrier; each in a file of its own.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"

namespace unisono::collectives {

std::uint32_t barrier_dissemination_steps(const Call& call);
void barrier_dissemination_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t barrier_flat_steps(const Call& call);
void barrier_flat_step(const Call& call, std::uint32_t s, Emit& emit);
bool barrier_flat_admits(const Call& call);

inline constexpr std::array<Algorithm, 2> kBarrier{{
    {.collective = Collective::kBarrier,
     .name = "dissemination",
     .source = "Hensgen, Finkel and Manber, IJPP 1988",
     .restriction = "",
     .cost = "ceil(log2 P) alpha",
     .summary = "In round k each rank signals the rank 2^k to its right, once it has heard from all rounds before.",
     .ordered = true,
     .steps = barrier_dissemination_steps,
     .step = barrier_dissemination_step},
    {.collective = Collective::kBarrier,
     .name = "flat",
     .source = "Bruck et al., IEEE TPDS 1997 (one round, P-1 ports)",
     .restriction = "at most 64 ranks",
     .cost = "alpha",
     .summary = "Everybody signals everybody; one round.",
     .ordered = true,
     .steps = barrier_flat_steps,
     .step = barrier_flat_step,
     .admits = barrier_flat_admits},
}};

}  // namespace unisono::collectives
