// The algorithms of all-to-allv; each in a file of its own.
//
// Params, P words each: counts sent to each rank, where they stand in src (bytes), counts received from
// each rank, where they go in dst (bytes). In place, what is sent has the layout of what is received.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"

namespace unisono::collectives {

std::uint32_t alltoallv_pairwise_steps(const Call& call);
void alltoallv_pairwise_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t alltoallv_pairwise_scratch_bytes(const Call& call);
bool alltoallv_pairwise_admits(const Call& call);

std::uint32_t alltoallv_scattered_steps(const Call& call);
void alltoallv_scattered_step(const Call& call, std::uint32_t s, Emit& emit);
bool alltoallv_scattered_admits(const Call& call);

/// The params of both.
std::uint32_t alltoallv_params_words(const Call& call);
void alltoallv_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

inline constexpr std::array<Algorithm, 2> kAlltoallv{{
    {.collective = Collective::kAlltoallv,
     .name = "pairwise",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005 (its all-to-all), with counts",
     .restriction = "in place only if the count of the call bounds every block, as all ranks have agreed",
     .cost = "(P-1) alpha + (P-1) m beta, m bytes in the largest block",
     .summary = "One exchange at a time, everybody with another partner; steady under load.",
     .ordered = true,
     .steps = alltoallv_pairwise_steps,
     .step = alltoallv_pairwise_step,
     .scratch_bytes = alltoallv_pairwise_scratch_bytes,
     .admits = alltoallv_pairwise_admits,
     .params_words = alltoallv_params_words,
     .fill_params = alltoallv_fill_params},
    {.collective = Collective::kAlltoallv,
     .name = "scattered",
     .source = "MPICH (its scattered all-to-allv, staggered non-blocking messages)",
     .restriction = "not in place",
     .cost = "(P-1) alpha + N beta, N bytes at the rank that sends or receives most; the latencies overlap",
     .summary = "All messages at once, each rank beginning with its right neighbour.",
     .ordered = true,
     .steps = alltoallv_scattered_steps,
     .step = alltoallv_scattered_step,
     .admits = alltoallv_scattered_admits,
     .params_words = alltoallv_params_words,
     .fill_params = alltoallv_fill_params},
}};

}  // namespace unisono::collectives
