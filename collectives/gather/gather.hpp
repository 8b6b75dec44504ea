// The algorithms of gather; each in a file of its own.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"

namespace unisono::collectives {

std::uint32_t gather_linear_steps(const Call& call);
void gather_linear_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t gather_binomial_steps(const Call& call);
void gather_binomial_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t gather_binomial_scratch_bytes(const Call& call);

inline constexpr std::array<Algorithm, 2> kGather{{
    {.collective = Collective::kGather,
     .name = "linear",
     .source = "folklore",
     .restriction = "",
     .cost = "(P-1) alpha + (P-1) n beta at the root, n bytes a block",
     .summary = "Every rank sends to the root, which stores each block where it belongs; no scratch.",
     .ordered = true,
     .steps = gather_linear_steps,
     .step = gather_linear_step},
    {.collective = Collective::kGather,
     .name = "binomial",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
     .restriction = "",
     .cost = "ceil(log2 P) alpha + (P-1) n beta, n bytes a block",
     .summary = "Subtrees of doubling size collect their blocks and hand them up as one message.",
     .ordered = true,
     .steps = gather_binomial_steps,
     .step = gather_binomial_step,
     .scratch_bytes = gather_binomial_scratch_bytes},
}};

}  // namespace unisono::collectives
