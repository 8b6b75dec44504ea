// The algorithms of exscan (exclusive prefix reduction); each in a file of its own. Rank 0's dst is
// left as it is.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"

namespace unisono::collectives {

std::uint32_t exscan_linear_steps(const Call& call);
void exscan_linear_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t exscan_linear_scratch_bytes(const Call& call);

std::uint32_t exscan_recursive_doubling_steps(const Call& call);
void exscan_recursive_doubling_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t exscan_recursive_doubling_scratch_bytes(const Call& call);

std::uint32_t exscan_two_level_steps(const Call& call);
void exscan_two_level_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t exscan_two_level_scratch_bytes(const Call& call);

std::uint32_t exscan_one_shot_steps(const Call& call);
void exscan_one_shot_step(const Call& call, std::uint32_t s, Emit& emit);
bool exscan_one_shot_admits(const Call& call);

inline constexpr std::array<Algorithm, 4> kExscan{{
    {.collective = Collective::kExscan,
     .name = "linear",
     .source = "MPI 4.0 section 5.11 (definition)",
     .restriction = "",
     .cost = "(P-1) alpha + (1 + (P-2)/S) n (beta + gamma) with S segments",
     .summary = "A line of ranks, each keeping what arrives and passing it on with its part added.",
     .ordered = true,
     .steps = exscan_linear_steps,
     .step = exscan_linear_step,
     .scratch_bytes = exscan_linear_scratch_bytes},
    {.collective = Collective::kExscan,
     .name = "recursive_doubling",
     .source = "Hillis and Steele, CACM 1986",
     .restriction = "",
     .cost = "ceil(log2 P) (alpha + n beta + 2 n gamma)",
     .summary = "Each round adds the partial sum of the rank twice as far to the left.",
     .ordered = true,
     .steps = exscan_recursive_doubling_steps,
     .step = exscan_recursive_doubling_step,
     .scratch_bytes = exscan_recursive_doubling_scratch_bytes},
    {.collective = Collective::kExscan,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000, on the linear scan",
     .restriction = "groups are ranges of ranks",
     .cost = "with groups of g: g alpha + 2 n (beta + gamma) + (g-2) n beta within, (P/g - 1) alpha + n (beta + 2 "
             "gamma) between",
     .summary =
         "A line within each group, a line of the groups' last ranks, and what stands before a group to all of it.",
     .ordered = true,
     .steps = exscan_two_level_steps,
     .step = exscan_two_level_step,
     .scratch_bytes = exscan_two_level_scratch_bytes,
     .admits = build::admits_ranges,
     .grouped = true},
    {.collective = Collective::kExscan,
     .name = "one_shot",
     .source = "Bruck et al., IEEE TPDS 1997 (one round, P-1 ports)",
     .restriction = "at most 32 ranks",
     .cost = "alpha + (P-1) n beta + (P-1) n gamma",
     .summary = "Everybody sends its vector to all ranks behind it; one round, for tiny vectors on few ranks.",
     .ordered = true,
     .steps = exscan_one_shot_steps,
     .step = exscan_one_shot_step,
     .admits = exscan_one_shot_admits},
}};

}  // namespace unisono::collectives
