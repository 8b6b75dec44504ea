// The algorithms of all-to-all; each in a file of its own.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"

namespace unisono::collectives {

std::uint32_t alltoall_pairwise_steps(const Call& call);
void alltoall_pairwise_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t alltoall_pairwise_scratch_bytes(const Call& call);

std::uint32_t alltoall_bruck_steps(const Call& call);
void alltoall_bruck_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t alltoall_bruck_scratch_bytes(const Call& call);

std::uint32_t alltoall_scattered_steps(const Call& call);
void alltoall_scattered_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t alltoall_scattered_scratch_bytes(const Call& call);

std::uint32_t alltoall_direct_steps(const Call& call);
void alltoall_direct_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t alltoall_direct_scratch_bytes(const Call& call);
bool alltoall_direct_admits(const Call& call);

std::uint32_t alltoall_two_level_steps(const Call& call);
void alltoall_two_level_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t alltoall_two_level_scratch_bytes(const Call& call);
bool alltoall_two_level_admits(const Call& call);

inline constexpr std::array<Algorithm, 5> kAlltoall{{
    {.collective = Collective::kAlltoall,
     .name = "pairwise",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
     .restriction = "",
     .cost = "(P-1) alpha + (P-1) n beta, n bytes a block",
     .summary = "One exchange at a time, everybody with another partner; steady under load.",
     .ordered = true,
     .steps = alltoall_pairwise_steps,
     .step = alltoall_pairwise_step,
     .scratch_bytes = alltoall_pairwise_scratch_bytes},
    {.collective = Collective::kAlltoall,
     .name = "bruck",
     .source = "Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997",
     .restriction = "",
     .cost = "ceil(log_k P) alpha + ceil(log_k P) P (k-1)/k n beta, n bytes a block",
     .summary = "Blocks hop by powers of k towards their rank; few messages, for small blocks; k is the radix, as in "
                "bruck:4, or 2.",
     .ordered = true,
     .steps = alltoall_bruck_steps,
     .step = alltoall_bruck_step,
     .scratch_bytes = alltoall_bruck_scratch_bytes,
     .default_radix = 2},
    {.collective = Collective::kAlltoall,
     .name = "scattered",
     .source = "MPICH (its scattered all-to-all, staggered non-blocking messages)",
     .restriction = "",
     .cost = "(P-1) alpha + (P-1) n beta, n bytes a block; the latencies overlap",
     .summary = "All messages at once, each rank beginning with its right neighbour.",
     .ordered = true,
     .steps = alltoall_scattered_steps,
     .step = alltoall_scattered_step,
     .scratch_bytes = alltoall_scattered_scratch_bytes},
    {.collective = Collective::kAlltoall,
     .name = "direct",
     .source = "this project (direct access to the memory of other ranks)",
     .restriction = "at most 16 ranks, direct access",
     .cost = "sigma + alpha + P n beta, n bytes a block; in place 3/2 (P-1) n beta",
     .summary = "Every rank takes its blocks from all; in place every two ranks exchange halves.",
     .ordered = true,
     .steps = alltoall_direct_steps,
     .step = alltoall_direct_step,
     .scratch_bytes = alltoall_direct_scratch_bytes,
     .admits = alltoall_direct_admits,
     .direct = true},
    {.collective = Collective::kAlltoall,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000, for an all-to-all",
     .restriction = "groups are ranges of ranks; what one sends another has at most 2^40 - 1 elements",
     .cost = "with groups of g, n bytes a block: (g-1) (alpha + n beta) + 2 (alpha + (g-1) (P-g) n beta) within, "
             "(P/g - 1) (alpha + g^2 n beta) between",
     .summary = "Within a group from rank to rank; between groups one message for each two, through their leaders.",
     .ordered = true,
     .steps = alltoall_two_level_steps,
     .step = alltoall_two_level_step,
     .scratch_bytes = alltoall_two_level_scratch_bytes,
     .admits = alltoall_two_level_admits,
     .grouped = true},
}};

}  // namespace unisono::collectives
