// The algorithms of scatter; each in a file of its own.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"

namespace unisono::collectives {

std::uint32_t scatter_linear_steps(const Call& call);
void scatter_linear_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t scatter_binomial_steps(const Call& call);
void scatter_binomial_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t scatter_binomial_scratch_bytes(const Call& call);

inline constexpr std::array<Algorithm, 2> kScatter{{
    {.collective = Collective::kScatter,
     .name = "linear",
     .source = "folklore",
     .restriction = "",
     .cost = "(P-1) alpha + (P-1) n beta at the root, n bytes a block",
     .summary = "The root sends each rank its block; no scratch.",
     .ordered = true,
     .steps = scatter_linear_steps,
     .step = scatter_linear_step},
    {.collective = Collective::kScatter,
     .name = "binomial",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
     .restriction = "",
     .cost = "ceil(log2 P) alpha + (P-1) n beta, n bytes a block",
     .summary = "A subtree gets its blocks as one message and hands half of what is left to each child.",
     .ordered = true,
     .steps = scatter_binomial_steps,
     .step = scatter_binomial_step,
     .scratch_bytes = scatter_binomial_scratch_bytes},
}};

}  // namespace unisono::collectives
