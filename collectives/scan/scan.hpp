// The algorithms of scan (inclusive prefix reduction); each in a file of its own.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"

namespace unisono::collectives {

std::uint32_t scan_linear_steps(const Call& call);
void scan_linear_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t scan_recursive_doubling_steps(const Call& call);
void scan_recursive_doubling_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t scan_recursive_doubling_scratch_bytes(const Call& call);

inline constexpr std::array<Algorithm, 2> kScan{{
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
}};

}  // namespace unisono::collectives
