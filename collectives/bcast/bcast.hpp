// The algorithms of broadcast; each in a file of its own. The vector stands in dst on every rank.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

std::uint32_t bcast_linear_steps(const Call& call);
void bcast_linear_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t bcast_binomial_steps(const Call& call);
void bcast_binomial_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t bcast_chain_steps(const Call& call);
void bcast_chain_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t bcast_scatter_allgather_steps(const Call& call);
void bcast_scatter_allgather_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t bcast_direct_steps(const Call& call);
void bcast_direct_step(const Call& call, std::uint32_t s, Emit& emit);
bool bcast_direct_admits(const Call& call);

std::uint32_t bcast_knomial_steps(const Call& call);
void bcast_knomial_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t bcast_two_level_steps(const Call& call);
void bcast_two_level_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t bcast_two_shot_steps(const Call& call);
void bcast_two_shot_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t bcast_switch_steps(const Call& call);
void bcast_switch_step(const Call& call, std::uint32_t s, Emit& emit);

inline constexpr std::array<Algorithm, 9> kBcast{{
    {.collective = Collective::kBcast,
     .name = "linear",
     .source = "ACCL+ section 4.2.4 (one-to-all)",
     .restriction = "",
     .cost = "alpha + (P-1) n beta",
     .summary = "The root reads its vector once and sends it to everyone.",
     .ordered = true,
     .steps = bcast_linear_steps,
     .step = bcast_linear_step},
    {.collective = Collective::kBcast,
     .name = "binomial",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005; ACCL+ section 4.2.4 (recursive doubling)",
     .restriction = "",
     .cost = "ceil(log2 P) (alpha + n beta); large vectors stream through the tree",
     .summary = "A binomial tree in which a rank stores what arrives and passes it on in one move.",
     .ordered = true,
     .steps = bcast_binomial_steps,
     .step = bcast_binomial_step},
    {.collective = Collective::kBcast,
     .name = "chain",
     .source = "Pjesivac-Grbovic et al., Cluster Computing 2007 (pipeline)",
     .restriction = "",
     .cost = "(P-1) alpha + (1 + (P-2)/S) n beta with S segments",
     .summary = "A line of ranks through which segments stream: one move a rank, for large vectors.",
     .ordered = true,
     .steps = bcast_chain_steps,
     .step = bcast_chain_step},
    {.collective = Collective::kBcast,
     .name = "scatter_allgather",
     .source = "Barnett, Payne, van de Geijn and Watts, JPDC 1996; Thakur et al. 2005",
     .restriction = "",
     .cost = "(ceil(log2 P) + P-1) alpha + 2 n (P-1)/P beta",
     .summary = "Blocks go down a binomial tree, then around a ring, where nobody is sent what it has.",
     .ordered = true,
     .steps = bcast_scatter_allgather_steps,
     .step = bcast_scatter_allgather_step},
    {.collective = Collective::kBcast,
     .name = "direct",
     .source = "this project (direct access to the memory of other ranks)",
     .restriction = "at most 16 ranks, direct access",
     .cost = "sigma + alpha + n (P-1)/P beta",
     .summary = "The root writes one share into every dst, the others read the rest; all copy the same.",
     .ordered = true,
     .steps = bcast_direct_steps,
     .step = bcast_direct_step,
     .admits = bcast_direct_admits,
     .direct = true},
    {.collective = Collective::kBcast,
     .name = "knomial",
     .source = "k-nomial trees of MPICH and UCC",
     .restriction = "",
     .cost = "ceil(log_k P) (alpha + (k-1) n beta); large vectors stream through the tree",
     .summary = "A tree with up to k-1 children on each level; k is the radix, as in knomial:8, or 4.",
     .ordered = true,
     .steps = bcast_knomial_steps,
     .step = bcast_knomial_step,
     .default_radix = 4},
    {.collective = Collective::kBcast,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000",
     .restriction = "",
     .cost = "with groups of g: ceil(log2 P/g) (alpha + n beta) + alpha + (g-1) n beta",
     .summary = "Between groups over a tree of their leaders, then within each group.",
     .ordered = true,
     .steps = build::steps_by_position<bcast_two_level_steps>,
     .step = build::step_by_position<bcast_two_level_step>,
     .grouped = true},
    {.collective = Collective::kBcast,
     .name = "two_shot",
     .source = "Bruck et al., IEEE TPDS 1997 (rounds with P-1 ports); Barnett et al., JPDC 1996",
     .restriction = "",
     .cost = "2 alpha + (1 + 1/k) n beta",
     .summary = "The root gives every rank a share, which each sends to all others; in k rows, or one for each 8 KiB "
                "of a share.",
     .ordered = true,
     .steps = bcast_two_shot_steps,
     .step = bcast_two_shot_step,
     .default_radix = 1},
    {.collective = Collective::kBcast,
     .name = "switch",
     .source = "ACiS (Haghi, thesis 2023); SHARP (Graham et al., COMHPC 2016)",
     .restriction = "a tree of members and switches",
     .cost = "2 d alpha + n beta over d levels of switches",
     .summary = "Switches pass on what comes from the root's side to all others at once.",
     .ordered = true,
     .steps = bcast_switch_steps,
     .step = bcast_switch_step,
     .admits = build::admits_tree,
     .switched = true},
}};

}  // namespace unisono::collectives
