// The algorithms of reduce; each in a file of its own. dst is bound on the root only.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"
#include "collectives/tree_place.hpp"

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

std::uint32_t reduce_knomial_steps(const Call& call);
void reduce_knomial_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t reduce_two_level_steps(const Call& call);
void reduce_two_level_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t reduce_two_shot_steps(const Call& call);
void reduce_two_shot_step(const Call& call, std::uint32_t s, Emit& emit);
bool reduce_two_shot_admits(const Call& call);

std::uint32_t reduce_switch_steps(const Call& call);
void reduce_switch_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t reduce_switch_scratch_bytes(const Call& call);

inline constexpr std::array<Algorithm, 8> kReduce{{
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
    {.collective = Collective::kReduce,
     .name = "knomial",
     .source = "k-nomial trees of MPICH and UCC",
     .restriction = "",
     .cost = "ceil(log_k P) (alpha + (k-1) n beta + (k-1) n gamma); large vectors stream through the tree",
     .summary = "Trees with up to k-1 children on each level, in rank order; k is the radix, as in knomial:8, or 4.",
     .ordered = true,
     .steps = reduce_knomial_steps,
     .step = reduce_knomial_step,
     .default_radix = 4},
    {.collective = Collective::kReduce,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000",
     .restriction = "",
     .cost = "with groups of g: alpha + (g-1) (n beta + n gamma) + ceil(log2 P/g) (alpha + n beta + n gamma)",
     .summary = "Within each group, then over trees of their leaders, in rank order.",
     .ordered = true,
     .steps = build::steps_by_position<reduce_two_level_steps>,
     .step = build::step_by_position<reduce_two_level_step>,
     .grouped = true},
    {.collective = Collective::kReduce,
     .name = "two_shot",
     .source = "Bruck et al., IEEE TPDS 1997 (rounds with P-1 ports); Rabenseifner, 1997",
     .restriction = "at most 17 ranks",
     .cost = "2 alpha + 2 n beta + n gamma",
     .summary =
         "Every rank but the root folds a share of the vector from all and sends it to the root; in 1 row, or k.",
     .ordered = true,
     .steps = reduce_two_shot_steps,
     .step = reduce_two_shot_step,
     .admits = reduce_two_shot_admits,
     .default_radix = 1},
    {.collective = Collective::kReduce,
     .name = "switch",
     .source = "ACiS (Haghi, thesis 2023); SHARP (Graham et al., COMHPC 2016)",
     .restriction = "a tree of members and switches",
     .cost = "2 d alpha + 2 n beta over d levels of switches",
     .summary = "Switches fold what comes from below; the result goes from the top to the root.",
     .ordered = true,
     .steps = reduce_switch_steps,
     .step = reduce_switch_step,
     .scratch_bytes = reduce_switch_scratch_bytes,
     .admits = build::admits_tree,
     .switched = true},
}};

}  // namespace unisono::collectives
