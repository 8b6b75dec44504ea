// The algorithms of all-reduce; each in a file of its own.
//
// In all of them every element of the result is computed once, or by both partners of an exchange with
// the operands in the same order, so that all ranks get the same bits.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

std::uint32_t allreduce_recursive_doubling_steps(const Call& call);
void allreduce_recursive_doubling_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t allreduce_recursive_doubling_scratch_bytes(const Call& call);

std::uint32_t allreduce_ring_steps(const Call& call);
void allreduce_ring_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t allreduce_rabenseifner_steps(const Call& call);
void allreduce_rabenseifner_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t allreduce_reduce_bcast_steps(const Call& call);
void allreduce_reduce_bcast_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t allreduce_two_level_steps(const Call& call);
void allreduce_two_level_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t allreduce_two_level_scratch_bytes(const Call& call);

std::uint32_t allreduce_multi_leader_steps(const Call& call);
void allreduce_multi_leader_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t allreduce_multi_leader_scratch_bytes(const Call& call);

std::uint32_t allreduce_direct_steps(const Call& call);
void allreduce_direct_step(const Call& call, std::uint32_t s, Emit& emit);
bool allreduce_direct_admits(const Call& call);

std::uint32_t allreduce_direct_replicated_steps(const Call& call);
void allreduce_direct_replicated_step(const Call& call, std::uint32_t s, Emit& emit);
bool allreduce_direct_replicated_admits(const Call& call);

std::uint32_t allreduce_flat_steps(const Call& call);
void allreduce_flat_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t allreduce_flat_scratch_bytes(const Call& call);
bool allreduce_flat_admits(const Call& call);

std::uint32_t allreduce_knomial_steps(const Call& call);
void allreduce_knomial_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t allreduce_recursive_multiplying_steps(const Call& call);
void allreduce_recursive_multiplying_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t allreduce_recursive_multiplying_scratch_bytes(const Call& call);

std::uint32_t allreduce_chain_steps(const Call& call);
void allreduce_chain_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t allreduce_one_shot_steps(const Call& call);
void allreduce_one_shot_step(const Call& call, std::uint32_t s, Emit& emit);
bool allreduce_one_shot_admits(const Call& call);

std::uint32_t allreduce_two_shot_steps(const Call& call);
void allreduce_two_shot_step(const Call& call, std::uint32_t s, Emit& emit);
bool allreduce_two_shot_admits(const Call& call);

std::uint32_t allreduce_switch_steps(const Call& call);
void allreduce_switch_step(const Call& call, std::uint32_t s, Emit& emit);

inline constexpr std::array<Algorithm, 15> kAllreduce{{
    {.collective = Collective::kAllreduce,
     .name = "recursive_doubling",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
     .restriction = "",
     .cost = "log2(P) (alpha + n beta + n gamma); if P is no power of two 2 alpha + 2 n beta + n gamma more",
     .summary = "Partners at doubling distances exchange and add whole vectors; fewest rounds, for small vectors.",
     .ordered = true,
     .steps = allreduce_recursive_doubling_steps,
     .step = allreduce_recursive_doubling_step,
     .scratch_bytes = allreduce_recursive_doubling_scratch_bytes},
    {.collective = Collective::kAllreduce,
     .name = "ring",
     .source = "Patarasuk and Yuan, JPDC 2009; ACCL section IV.E",
     .restriction = "",
     .cost = "2 (P-1) alpha + 2 n (P-1)/P beta + n (P-1)/P gamma",
     .summary = "Chunks travel twice around the ring, first summed, then copied; bandwidth-optimal, no scratch.",
     .ordered = false,
     .steps = allreduce_ring_steps,
     .step = allreduce_ring_step},
    {.collective = Collective::kAllreduce,
     .name = "rabenseifner",
     .source = "Rabenseifner, 1997; Thakur, Rabenseifner and Gropp, IJHPCA 2005",
     .restriction = "",
     .cost = "2 log2(P) alpha + 2 n (P-1)/P beta + n (P-1)/P gamma; if P is no power of two "
             "2 alpha + 2 n beta + n gamma more",
     .summary = "Reduce-scatter by halving, all-gather by doubling; bandwidth-optimal in few rounds.",
     .ordered = true,
     .steps = allreduce_rabenseifner_steps,
     .step = allreduce_rabenseifner_step},
    {.collective = Collective::kAllreduce,
     .name = "reduce_bcast",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005 (binomial trees)",
     .restriction = "",
     .cost = "2 ceil(log2 P) (alpha + n beta) + ceil(log2 P) n gamma; large vectors stream through the tree",
     .summary = "Up and down one binomial tree, two moves a rank, streaming from end to end.",
     .ordered = true,
     .steps = allreduce_reduce_bcast_steps,
     .step = allreduce_reduce_bcast_step},
    {.collective = Collective::kAllreduce,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000 (multilevel topology-aware collectives)",
     .restriction = "",
     .cost = "2 (alpha + (g-1) n beta) within a group of g + log2(P/g) (alpha + n beta + n gamma) between groups",
     .summary = "Groups reduce to their first rank, these use recursive doubling, the result returns to the groups.",
     .ordered = true,
     .steps = build::steps_by_position<allreduce_two_level_steps>,
     .step = build::step_by_position<allreduce_two_level_step>,
     .scratch_bytes = build::scratch_by_position<allreduce_two_level_scratch_bytes>,
     .grouped = true},
    {.collective = Collective::kAllreduce,
     .name = "multi_leader",
     .source = "Bayatpour et al., SC 2017 (data partitioning-based multi-leader design)",
     .restriction = "",
     .cost = "2 (m alpha + (g-1) n/m beta) within a group of g with m leaders + log2(P/g) (alpha + n/m beta + n/m "
             "gamma) between groups",
     .summary = "As two_level, but each of up to 16 members of a group leads in a share of the vector; for large ones.",
     .ordered = false,
     .steps = build::steps_by_position<allreduce_multi_leader_steps>,
     .step = build::step_by_position<allreduce_multi_leader_step>,
     .scratch_bytes = build::scratch_by_position<allreduce_multi_leader_scratch_bytes>,
     .grouped = true},
    {.collective = Collective::kAllreduce,
     .name = "direct",
     .source = "this project (direct access to the memory of other ranks)",
     .restriction = "at most 16 ranks, direct access",
     .cost = "sigma + alpha + n (P+1)/P beta + n (P-1)/P gamma",
     .summary = "Every rank sums one share of the vector, straight from all and straight into every dst.",
     .ordered = true,
     .steps = allreduce_direct_steps,
     .step = allreduce_direct_step,
     .admits = allreduce_direct_admits,
     .direct = true},
    {.collective = Collective::kAllreduce,
     .name = "direct_replicated",
     .source = "this project (direct access to the memory of other ranks)",
     .restriction = "at most 16 ranks, direct access, not in place",
     .cost = "sigma + alpha + n P beta + n (P-1) gamma",
     .summary = "Every rank reads all vectors and keeps the whole sum; for small vectors on few ranks.",
     .ordered = true,
     .steps = allreduce_direct_replicated_steps,
     .step = allreduce_direct_replicated_step,
     .admits = allreduce_direct_replicated_admits,
     .direct = true},
    {.collective = Collective::kAllreduce,
     .name = "flat",
     .source = "Bruck et al., IEEE TPDS 1997 (one round, P-1 ports)",
     .restriction = "at most 64 ranks",
     .cost = "alpha + (P-1) n beta + (P-1) n gamma",
     .summary = "Everybody sends everybody its vector and folds all; one round, for tiny vectors on few ranks.",
     .ordered = true,
     .steps = allreduce_flat_steps,
     .step = allreduce_flat_step,
     .scratch_bytes = allreduce_flat_scratch_bytes,
     .admits = allreduce_flat_admits},
    {.collective = Collective::kAllreduce,
     .name = "knomial",
     .source = "k-nomial trees of MPICH and UCC",
     .restriction = "",
     .cost = "2 ceil(log_k P) (alpha + (k-1) n beta) + ceil(log_k P) (k-1) n gamma",
     .summary =
         "As reduce_bcast, over a tree with up to k-1 children on each level; k is the radix, as in knomial:8, or 4.",
     .ordered = true,
     .steps = allreduce_knomial_steps,
     .step = allreduce_knomial_step,
     .default_radix = 4},
    {.collective = Collective::kAllreduce,
     .name = "recursive_multiplying",
     .source = "Ruefenacht, Bull and Booth, Parallel Computing 2017",
     .restriction = "",
     .cost = "ceil(log_k P) (alpha + (k-1) n beta + (k-1) n gamma); where ranks are left over 2 alpha + 2 n beta + n "
             "gamma more",
     .summary = "As recursive_doubling, k partners in a round; k is the radix, as in recursive_multiplying:8, or 4.",
     .ordered = true,
     .steps = allreduce_recursive_multiplying_steps,
     .step = allreduce_recursive_multiplying_step,
     .scratch_bytes = allreduce_recursive_multiplying_scratch_bytes,
     .default_radix = 4},
    {.collective = Collective::kAllreduce,
     .name = "chain",
     .source = "Pjesivac-Grbovic et al., Cluster Computing 2007 (pipelines)",
     .restriction = "",
     .cost = "2 (P-1) alpha + (2 + 2 (P-2)/S) n beta + n gamma with S segments",
     .summary = "Sums go down the line of ranks, the result comes back, in one pipeline; for streams of kernels.",
     .ordered = true,
     .steps = allreduce_chain_steps,
     .step = allreduce_chain_step},
    {.collective = Collective::kAllreduce,
     .name = "one_shot",
     .source = "Bruck et al., IEEE TPDS 1997 (one round, P-1 ports)",
     .restriction = "at most 31 ranks",
     .cost = "alpha + (P-1) n beta + (P-1) n gamma",
     .summary = "As flat, each message in a move of its own, to the ranks behind first; for engines in hardware.",
     .ordered = true,
     .steps = allreduce_one_shot_steps,
     .step = allreduce_one_shot_step,
     .scratch_bytes = allreduce_flat_scratch_bytes,
     .admits = allreduce_one_shot_admits},
    {.collective = Collective::kAllreduce,
     .name = "two_shot",
     .source = "Bruck et al., IEEE TPDS 1997 (rounds with P-1 ports); Rabenseifner, 1997",
     .restriction = "at most 31 ranks",
     .cost = "2 alpha + 2 n (P-1)/P beta + n (P-1)/P gamma",
     .summary = "Everybody folds a share of the vector from all and sends it to all; two rounds. In 1 row, or k.",
     .ordered = true,
     .steps = allreduce_two_shot_steps,
     .step = allreduce_two_shot_step,
     .admits = allreduce_two_shot_admits,
     .default_radix = 1},
    {.collective = Collective::kAllreduce,
     .name = "switch",
     .source = "ACiS (Haghi, thesis 2023); SHARP (Graham et al., COMHPC 2016)",
     .restriction = "a tree of members and switches",
     .cost = "2 d alpha + 2 n beta over d levels of switches",
     .summary = "Switches fold what comes from below; the top sends the result down again.",
     .ordered = true,
     .steps = allreduce_switch_steps,
     .step = allreduce_switch_step,
     .admits = build::admits_tree,
     .switched = true},
}};

}  // namespace unisono::collectives
