// The algorithms of gather; each in a file of its own.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"
#include "collectives/gatherv/gatherv.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

std::uint32_t gather_linear_steps(const Call& call);
void gather_linear_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t gather_binomial_steps(const Call& call);
void gather_binomial_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t gather_binomial_scratch_bytes(const Call& call);

std::uint32_t gather_direct_steps(const Call& call);
void gather_direct_step(const Call& call, std::uint32_t s, Emit& emit);
bool gather_direct_admits(const Call& call);

std::uint32_t gather_knomial_steps(const Call& call);
void gather_knomial_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t gather_knomial_scratch_bytes(const Call& call);

std::uint32_t gather_two_level_steps(const Call& call);
void gather_two_level_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t gather_two_level_scratch_bytes(const Call& call);

std::uint32_t gather_switch_steps(const Call& call);
void gather_switch_step(const Call& call, std::uint32_t s, Emit& emit);

inline constexpr std::array<Algorithm, 6> kGather{{
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
    {.collective = Collective::kGather,
     .name = "direct",
     .source = "this project (direct access to the memory of other ranks)",
     .restriction = "at most 16 ranks, direct access",
     .cost = "sigma + alpha + n beta, n bytes a block; in place n (P-1)/P beta",
     .summary = "Every rank puts its block into the root's dst; in place the root reads a share of each.",
     .ordered = true,
     .steps = gather_direct_steps,
     .step = gather_direct_step,
     .admits = gather_direct_admits,
     .direct = true},
    {.collective = Collective::kGather,
     .name = "knomial",
     .source = "k-nomial trees of MPICH and UCC",
     .restriction = "",
     .cost = "ceil(log_k P) (k-1) alpha + (P-1) n beta, n bytes a block",
     .summary = "As binomial, with up to k-1 children on each level; k is the radix, as in knomial:8, or 4.",
     .ordered = true,
     .steps = gather_knomial_steps,
     .step = gather_knomial_step,
     .scratch_bytes = gather_knomial_scratch_bytes,
     .default_radix = 4},
    {.collective = Collective::kGather,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000",
     .restriction = "",
     .cost = "with groups of g: 2 alpha + (P-1) n beta, n bytes a block",
     .summary = "The leader of a group collects its blocks and sends them as one message.",
     .ordered = true,
     .steps = build::steps_with_counts<gather_two_level_steps, gatherv_two_level_steps>,
     .step = build::step_with_counts<gather_two_level_step, gatherv_two_level_step>,
     .scratch_bytes = build::scratch_with_counts<gather_two_level_scratch_bytes, gatherv_two_level_scratch_bytes>,
     .grouped = true},
    {.collective = Collective::kGather,
     .name = "switch",
     .source = "ACiS (Haghi, thesis 2023); SHARP (Graham et al., COMHPC 2016)",
     .restriction = "a tree of members and switches",
     .cost = "2 d alpha + P n beta over d levels of switches, n bytes a block",
     .summary = "Switches pass on block after block, in the order of the tree.",
     .ordered = true,
     .steps = gather_switch_steps,
     .step = gather_switch_step,
     .admits = build::admits_tree,
     .switched = true},
}};

}  // namespace unisono::collectives
