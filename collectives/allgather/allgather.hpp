// The algorithms of all-gather; each in a file of its own.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/allgatherv/allgatherv.hpp"
#include "collectives/by_position.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

std::uint32_t allgather_ring_steps(const Call& call);
void allgather_ring_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t allgather_recursive_doubling_steps(const Call& call);
void allgather_recursive_doubling_step(const Call& call, std::uint32_t s, Emit& emit);
bool allgather_recursive_doubling_admits(const Call& call);

std::uint32_t allgather_bruck_steps(const Call& call);
void allgather_bruck_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t allgather_direct_steps(const Call& call);
void allgather_direct_step(const Call& call, std::uint32_t s, Emit& emit);
bool allgather_direct_admits(const Call& call);

std::uint32_t allgather_flat_steps(const Call& call);
void allgather_flat_step(const Call& call, std::uint32_t s, Emit& emit);
bool allgather_flat_admits(const Call& call);

std::uint32_t allgather_recursive_exchange_steps(const Call& call);
void allgather_recursive_exchange_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t allgather_two_level_steps(const Call& call);
void allgather_two_level_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t allgather_chain_steps(const Call& call);
void allgather_chain_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t allgather_scattered_steps(const Call& call);
void allgather_scattered_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t allgather_switch_steps(const Call& call);
void allgather_switch_step(const Call& call, std::uint32_t s, Emit& emit);

inline constexpr std::array<Algorithm, 10> kAllgather{{
    {.collective = Collective::kAllgather,
     .name = "ring",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005; ACCL section IV.E",
     .restriction = "",
     .cost = "(P-1) alpha + (P-1) n beta, n bytes a block",
     .summary = "Blocks travel once around the ring; each rank keeps them and passes them on as they come.",
     .ordered = true,
     .steps = allgather_ring_steps,
     .step = allgather_ring_step},
    {.collective = Collective::kAllgather,
     .name = "recursive_doubling",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
     .restriction = "the number of ranks is a power of two",
     .cost = "log2(P) alpha + (P-1) n beta, n bytes a block",
     .summary = "Partners exchange all they have at twice the distance each time; least messages and least bytes.",
     .ordered = true,
     .steps = allgather_recursive_doubling_steps,
     .step = allgather_recursive_doubling_step,
     .admits = allgather_recursive_doubling_admits},
    {.collective = Collective::kAllgather,
     .name = "bruck",
     .source = "Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997; without its rotation",
     .restriction = "",
     .cost = "ceil(log2 P) alpha + (P-1) n beta, n bytes a block; one alpha more in a round whose blocks pass P-1",
     .summary = "Each round fetches as many blocks as are there from the right; few messages for any number of ranks.",
     .ordered = true,
     .steps = allgather_bruck_steps,
     .step = allgather_bruck_step},
    {.collective = Collective::kAllgather,
     .name = "direct",
     .source = "this project (direct access to the memory of other ranks)",
     .restriction = "at most 16 ranks, direct access",
     .cost = "sigma + alpha + P n beta, n bytes a block",
     .summary = "Every rank writes its block into every dst.",
     .ordered = true,
     .steps = allgather_direct_steps,
     .step = allgather_direct_step,
     .admits = allgather_direct_admits,
     .direct = true},
    {.collective = Collective::kAllgather,
     .name = "flat",
     .source = "Bruck et al., IEEE TPDS 1997 (one round, P-1 ports)",
     .restriction = "at most 32 ranks",
     .cost = "alpha + (P-1) n beta, n bytes a block",
     .summary = "Everybody sends everybody its block; one round, for tiny blocks on few ranks.",
     .ordered = true,
     .steps = allgather_flat_steps,
     .step = allgather_flat_step,
     .admits = allgather_flat_admits},
    {.collective = Collective::kAllgather,
     .name = "recursive_exchange",
     .source = "Bruck et al., IEEE TPDS 1997 (k-1 ports); without its rotation",
     .restriction = "",
     .cost = "ceil(log_k P) alpha + (P-1) n beta, n bytes a block, with k-1 ports",
     .summary = "As bruck, k-1 partners in a round; k is the radix, as in recursive_exchange:8, or 4.",
     .ordered = true,
     .steps = allgather_recursive_exchange_steps,
     .step = allgather_recursive_exchange_step,
     .default_radix = 4},
    {.collective = Collective::kAllgather,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000",
     .restriction = "",
     .cost =
         "with groups of g: 2 alpha + (P+g-1) n beta within, (P/g - 1) alpha + (P-g) n beta between, n bytes a block",
     .summary = "To the leaders of groups, around the ring of leaders, back into the groups as ranges come.",
     .ordered = true,
     .steps = build::steps_with_counts<allgather_two_level_steps, allgatherv_two_level_steps>,
     .step = build::step_with_counts<allgather_two_level_step, allgatherv_two_level_step>,
     .scratch_bytes = build::scratch_with_counts<nullptr, allgatherv_two_level_scratch_bytes>,
     .grouped = true},
    {.collective = Collective::kAllgather,
     .name = "chain",
     .source = "Pjesivac-Grbovic et al., Cluster Computing 2007 (pipelines)",
     .restriction = "",
     .cost = "(P-1) alpha + (P+1) n beta, n bytes a block",
     .summary = "A pipelined broadcast of each block, in the order of the ranks; for streams of kernels.",
     .ordered = true,
     .steps = allgather_chain_steps,
     .step = allgather_chain_step},
    {.collective = Collective::kAllgather,
     .name = "scattered",
     .source = "Bruck et al., IEEE TPDS 1997 (one round, P-1 ports); MPICH's scattered all-to-all",
     .restriction = "",
     .cost = "alpha + (P-1) n beta, n bytes a block",
     .summary = "As flat, each message in a move of its own, to the ranks behind first; for engines in hardware.",
     .ordered = true,
     .steps = allgather_scattered_steps,
     .step = allgather_scattered_step},
    {.collective = Collective::kAllgather,
     .name = "switch",
     .source = "ACiS (Haghi, thesis 2023); SHARP (Graham et al., COMHPC 2016)",
     .restriction = "a tree of members and switches",
     .cost = "2 d alpha + P n beta over d levels of switches, n bytes a block",
     .summary = "Each block goes once over every link; switches pass it on to all other sides at once.",
     .ordered = true,
     .steps = allgather_switch_steps,
     .step = allgather_switch_step,
     .admits = build::admits_tree,
     .switched = true},
}};

}  // namespace unisono::collectives
