// The algorithms of reduce-scatter; each in a file of its own.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"
#include "collectives/reduce_scatterv/reduce_scatterv.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

std::uint32_t reduce_scatter_ring_steps(const Call& call);
void reduce_scatter_ring_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t reduce_scatter_ring_scratch_bytes(const Call& call);

std::uint32_t reduce_scatter_recursive_halving_steps(const Call& call);
void reduce_scatter_recursive_halving_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t reduce_scatter_recursive_halving_scratch_bytes(const Call& call);

std::uint32_t reduce_scatter_pairwise_steps(const Call& call);
void reduce_scatter_pairwise_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t reduce_scatter_direct_steps(const Call& call);
void reduce_scatter_direct_step(const Call& call, std::uint32_t s, Emit& emit);
bool reduce_scatter_direct_admits(const Call& call);

std::uint32_t reduce_scatter_two_level_steps(const Call& call);
void reduce_scatter_two_level_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t reduce_scatter_two_level_scratch_bytes(const Call& call);

std::uint32_t reduce_scatter_switch_steps(const Call& call);
void reduce_scatter_switch_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t reduce_scatter_switch_scratch_bytes(const Call& call);

std::uint32_t reduce_scatter_one_shot_steps(const Call& call);
void reduce_scatter_one_shot_step(const Call& call, std::uint32_t s, Emit& emit);
bool reduce_scatter_one_shot_admits(const Call& call);

inline constexpr std::array<Algorithm, 7> kReduceScatter{{
    {.collective = Collective::kReduceScatter,
     .name = "ring",
     .source = "Patarasuk and Yuan, JPDC 2009 (first half of the ring all-reduce)",
     .restriction = "",
     .cost = "(P-1) alpha + (P-1) n beta + (P-1) n gamma, n bytes a block",
     .summary = "Partial sums travel once around the ring; bandwidth-optimal, two blocks of scratch.",
     .ordered = false,
     .steps = reduce_scatter_ring_steps,
     .step = reduce_scatter_ring_step,
     .scratch_bytes = reduce_scatter_ring_scratch_bytes},
    {.collective = Collective::kReduceScatter,
     .name = "recursive_halving",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
     .restriction = "",
     .cost = "log2(P) alpha + (P-1) n beta + (P-1) n gamma, n bytes a block; if P is no power of two "
             "2 alpha + (P+1) n beta + P n gamma more",
     .summary =
         "Partners exchange halves at half the distance each time; few messages, bandwidth-optimal for powers of two.",
     .ordered = false,
     .steps = reduce_scatter_recursive_halving_steps,
     .step = reduce_scatter_recursive_halving_step,
     .scratch_bytes = reduce_scatter_recursive_halving_scratch_bytes},
    {.collective = Collective::kReduceScatter,
     .name = "pairwise",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005 (pairwise exchange)",
     .restriction = "",
     .cost = "(P-1) alpha + (P-1) n beta + (P-1) n gamma, n bytes a block",
     .summary = "Every block goes straight to its rank, which adds what arrives; no rank waits for another's sum.",
     .ordered = false,
     .steps = reduce_scatter_pairwise_steps,
     .step = reduce_scatter_pairwise_step},
    {.collective = Collective::kReduceScatter,
     .name = "direct",
     .source = "this project (direct access to the memory of other ranks)",
     .restriction = "at most 16 ranks, direct access",
     .cost = "sigma + alpha + P n beta + (P-1) n gamma, n bytes a block; in place n beta "
             "more",
     .summary = "Every rank sums its block, straight from all.",
     .ordered = true,
     .steps = reduce_scatter_direct_steps,
     .step = reduce_scatter_direct_step,
     .admits = reduce_scatter_direct_admits,
     .direct = true},
    {.collective = Collective::kReduceScatter,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000",
     .restriction = "",
     .cost = "with groups of g: 2 alpha + (g-1) (P+1) n beta within, (P/g - 1) (alpha + g n beta + g n gamma) between",
     .summary = "Groups are folded at their leaders, ranges of blocks between these, in rank order, and handed out.",
     .ordered = true,
     .steps = build::steps_with_counts<reduce_scatter_two_level_steps, reduce_scatterv_two_level_steps>,
     .step = build::step_with_counts<reduce_scatter_two_level_step, reduce_scatterv_two_level_step>,
     .scratch_bytes =
         build::scratch_with_counts<reduce_scatter_two_level_scratch_bytes, reduce_scatterv_two_level_scratch_bytes>,
     .grouped = true},
    {.collective = Collective::kReduceScatter,
     .name = "one_shot",
     .source = "Bruck et al., IEEE TPDS 1997 (one round, P-1 ports)",
     .restriction = "at most 31 ranks",
     .cost = "alpha + (P-1) n beta + (P-1) n gamma, n bytes a block",
     .summary = "Everybody sends everybody its block and folds all in one move; one round.",
     .ordered = true,
     .steps = reduce_scatter_one_shot_steps,
     .step = reduce_scatter_one_shot_step,
     .admits = reduce_scatter_one_shot_admits},
    {.collective = Collective::kReduceScatter,
     .name = "switch",
     .source = "ACiS (Haghi, thesis 2023); SHARP (Graham et al., COMHPC 2016)",
     .restriction = "a tree of members and switches",
     .cost = "2 d alpha + P n beta over d levels of switches, n bytes a block",
     .summary = "Block after block is folded up the tree and sent down to its member.",
     .ordered = true,
     .steps = reduce_scatter_switch_steps,
     .step = reduce_scatter_switch_step,
     .scratch_bytes = reduce_scatter_switch_scratch_bytes,
     .admits = build::admits_tree,
     .switched = true},
}};

}  // namespace unisono::collectives
