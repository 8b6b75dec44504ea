// The algorithms of reduce; each in a file of its own. dst is bound on the root only.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"

namespace unisono::collectives {

std::uint32_t reduce_linear_steps(const Call& call);
void reduce_linear_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t reduce_binomial_steps(const Call& call);
void reduce_binomial_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t reduce_chain_steps(const Call& call);
void reduce_chain_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t reduce_direct_steps(const Call& call);
void reduce_direct_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t reduce_direct_scratch_bytes(const Call& call);
bool reduce_direct_admits(const Call& call);

inline constexpr std::array<Algorithm, 4> kReduce{{
    {.collective = Collective::kReduce,
     .name = "linear",
     .source = "ACCL+ section 4.2.4 (all-to-one)",
     .restriction = "",
     .cost = "alpha + (P-1) n beta + (P-1) n gamma",
     .summary = "Everyone sends to the root, which folds the messages in rank order as they arrive.",
     .ordered = true,
     .steps = reduce_linear_steps,
     .step = reduce_linear_step},
    {.collective = Collective::kReduce,
     .name = "binomial",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005; ACCL+ section 4.2.4 (binary tree)",
     .restriction = "",
     .cost = "ceil(log2 P) (alpha + n beta + n gamma); large vectors stream through the tree",
     .summary =
         "Binomial trees on both sides of the root, in which a rank folds its children and sends up in one move.",
     .ordered = true,
     .steps = reduce_binomial_steps,
     .step = reduce_binomial_step},
    {.collective = Collective::kReduce,
     .name = "chain",
     .source = "Pjesivac-Grbovic et al., Cluster Computing 2007 (pipeline); ACCL+ section 4.2.4 (ring)",
     .restriction = "",
     .cost = "(P-1) alpha + (1 + (P-2)/S) n (beta + gamma) with S segments",
     .summary = "A line of ranks, each adding its part to what passes: one move a rank, for large vectors.",
     .ordered = false,
     .steps = reduce_chain_steps,
     .step = reduce_chain_step},
    {.collective = Collective::kReduce,
     .name = "direct",
     .source = "this project (direct access to the memory of other ranks)",
     .restriction = "at most 16 ranks, direct access",
     .cost = "sigma + alpha + n beta + n (P-1)/P gamma; in place n/P beta more",
     .summary = "Every rank sums one share of the vector, straight from all and straight into the root's dst.",
     .ordered = true,
     .steps = reduce_direct_steps,
     .step = reduce_direct_step,
     .scratch_bytes = reduce_direct_scratch_bytes,
     .admits = reduce_direct_admits,
     .direct = true},
}};

}  // namespace unisono::collectives
