// The algorithms of scan (inclusive prefix reduction); each in a file of its own.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"

namespace unisono::collectives {

std::uint32_t scan_linear_steps(const Call& call);
void scan_linear_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t scan_recursive_doubling_steps(const Call& call);
void scan_recursive_doubling_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t scan_recursive_doubling_scratch_bytes(const Call& call);

std::uint32_t scan_two_level_steps(const Call& call);
void scan_two_level_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t scan_two_level_scratch_bytes(const Call& call);

std::uint32_t scan_one_shot_steps(const Call& call);
void scan_one_shot_step(const Call& call, std::uint32_t s, Emit& emit);
bool scan_one_shot_admits(const Call& call);

inline constexpr std::array<Algorithm, 4> kScan{{
    {.collective = Collective::kScan,
     .name = "linear",
     .source = "MPI 4.0 section 5.11 (definition)",
     .restriction = "",
     .cost = "(P-1) alpha + (1 + (P-2)/S) n (beta + gamma) with S segments",
     .summary = "A line of ranks, each adding its part, keeping the sum and passing it on: one move a rank.",
     .ordered = true,
     .steps = scan_linear_steps,
     .step = scan_linear_step},
    {.collective = Collective::kScan,
     .name = "recursive_doubling",
     .source = "Hillis and Steele, CACM 1986",
     .restriction = "",
     .cost = "ceil(log2 P) (alpha + n beta + n gamma)",
     .summary = "Each round adds the partial sum of the rank twice as far to the left.",
     .ordered = true,
     .steps = scan_recursive_doubling_steps,
     .step = scan_recursive_doubling_step,
     .scratch_bytes = scan_recursive_doubling_scratch_bytes},
    {.collective = Collective::kScan,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000, on the linear scan",
     .restriction = "groups are ranges of ranks",
     .cost = "with groups of g: g alpha + 2 n (beta + gamma) + (g-2) n beta within, (P/g - 1) alpha + n (beta + gamma) "
             "between",
     .summary =
         "A line within each group, a line of the groups' last ranks, and what stands before a group to all of it.",
     .ordered = true,
     .steps = scan_two_level_steps,
     .step = scan_two_level_step,
     .scratch_bytes = scan_two_level_scratch_bytes,
     .admits = build::admits_ranges,
     .grouped = true},
    {.collective = Collective::kScan,
     .name = "one_shot",
     .source = "Bruck et al., IEEE TPDS 1997 (one round, P-1 ports)",
     .restriction = "at most 32 ranks",
     .cost = "alpha + (P-1) n beta + (P-1) n gamma",
     .summary = "Everybody sends its vector to all ranks behind it; one round, for tiny vectors on few ranks.",
     .ordered = true,
     .steps = scan_one_shot_steps,
     .step = scan_one_shot_step,
     .admits = scan_one_shot_admits},
}};

}  // namespace unisono::collectives
