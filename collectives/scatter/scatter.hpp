// The algorithms of scatter; each in a file of its own.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"
#include "collectives/scatterv/scatterv.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

std::uint32_t scatter_linear_steps(const Call& call);
void scatter_linear_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t scatter_binomial_steps(const Call& call);
void scatter_binomial_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t scatter_binomial_scratch_bytes(const Call& call);

std::uint32_t scatter_direct_steps(const Call& call);
void scatter_direct_step(const Call& call, std::uint32_t s, Emit& emit);
bool scatter_direct_admits(const Call& call);

std::uint32_t scatter_knomial_steps(const Call& call);
void scatter_knomial_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t scatter_knomial_scratch_bytes(const Call& call);

std::uint32_t scatter_two_level_steps(const Call& call);
void scatter_two_level_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t scatter_two_level_scratch_bytes(const Call& call);

std::uint32_t scatter_switch_steps(const Call& call);
void scatter_switch_step(const Call& call, std::uint32_t s, Emit& emit);

inline constexpr std::array<Algorithm, 6> kScatter{{
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
    {.collective = Collective::kScatter,
     .name = "direct",
     .source = "this project (direct access to the memory of other ranks)",
     .restriction = "at most 16 ranks, direct access",
     .cost = "sigma + alpha + n beta, n bytes a block; in place n (P-1)/P beta",
     .summary = "Every rank takes its block from the root's src; in place the root writes a share of each.",
     .ordered = true,
     .steps = scatter_direct_steps,
     .step = scatter_direct_step,
     .admits = scatter_direct_admits,
     .direct = true},
    {.collective = Collective::kScatter,
     .name = "knomial",
     .source = "k-nomial trees of MPICH and UCC",
     .restriction = "",
     .cost = "ceil(log_k P) (k-1) alpha + (P-1) n beta, n bytes a block",
     .summary = "As binomial, with up to k-1 children on each level; k is the radix, as in knomial:8, or 4.",
     .ordered = true,
     .steps = scatter_knomial_steps,
     .step = scatter_knomial_step,
     .scratch_bytes = scatter_knomial_scratch_bytes,
     .default_radix = 4},
    {.collective = Collective::kScatter,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000",
     .restriction = "",
     .cost = "with groups of g: 2 alpha + (P-1) n beta, n bytes a block",
     .summary = "The leader of a group gets its blocks as one message and hands them out.",
     .ordered = true,
     .steps = build::steps_with_counts<scatter_two_level_steps, scatterv_two_level_steps>,
     .step = build::step_with_counts<scatter_two_level_step, scatterv_two_level_step>,
     .scratch_bytes = build::scratch_with_counts<scatter_two_level_scratch_bytes, scatterv_two_level_scratch_bytes>,
     .grouped = true},
    {.collective = Collective::kScatter,
     .name = "switch",
     .source = "ACiS (Haghi, thesis 2023); SHARP (Graham et al., COMHPC 2016)",
     .restriction = "a tree of members and switches",
     .cost = "2 d alpha + P n beta over d levels of switches, n bytes a block",
     .summary = "Switches pass on block after block, in the order of the tree.",
     .ordered = true,
     .steps = scatter_switch_steps,
     .step = scatter_switch_step,
     .admits = build::admits_tree,
     .switched = true},
}};

}  // namespace unisono::collectives
