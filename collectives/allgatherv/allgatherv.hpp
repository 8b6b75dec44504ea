// The algorithms of all-gatherv; each in a file of its own.
//
// Params: the count of each rank's block in words 0 .. P-1, where it stands in dst (bytes) in words
// P .. 2P-1.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"

namespace unisono::collectives {

std::uint32_t allgatherv_ring_steps(const Call& call);
void allgatherv_ring_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint32_t allgatherv_ring_params_words(const Call& call);
void allgatherv_ring_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

inline constexpr std::array<Algorithm, 1> kAllgatherv{{
    {.collective = Collective::kAllgatherv,
     .name = "ring",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
     .restriction = "",
     .cost = "(P-1) alpha + (P-1) m beta, m bytes in the largest block",
     .summary = "Blocks travel once around the ring; each rank keeps and passes on in one move.",
     .ordered = true,
     .steps = allgatherv_ring_steps,
     .step = allgatherv_ring_step,
     .params_words = allgatherv_ring_params_words,
     .fill_params = allgatherv_ring_fill_params},
}};

}  // namespace unisono::collectives
