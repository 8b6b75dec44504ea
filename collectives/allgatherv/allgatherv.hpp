// The algorithms of all-gatherv; each in a file of its own.
//
// Params: the count of each rank's block in words 0 .. P-1, where it stands in dst (bytes) in words
// P .. 2P-1, then what an algorithm adds.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"

namespace unisono::collectives {

std::uint32_t allgatherv_ring_steps(const Call& call);
void allgatherv_ring_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint32_t allgatherv_ring_params_words(const Call& call);
void allgatherv_ring_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

std::uint32_t allgatherv_bruck_steps(const Call& call);
void allgatherv_bruck_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t allgatherv_bruck_scratch_bytes(const Call& call);
bool allgatherv_bruck_admits(const Call& call);
std::uint32_t allgatherv_bruck_params_words(const Call& call);
void allgatherv_bruck_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

std::uint32_t allgatherv_two_level_steps(const Call& call);
void allgatherv_two_level_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t allgatherv_two_level_scratch_bytes(const Call& call);
bool allgatherv_two_level_admits(const Call& call);
std::uint32_t allgatherv_two_level_params_words(const Call& call);
void allgatherv_two_level_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

inline constexpr std::array<Algorithm, 3> kAllgatherv{{
    {.collective = Collective::kAllgatherv,
     .name = "ring",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
     .restriction = "",
     .cost = "(P-1) alpha + (P-1) m beta, m bytes in the largest block",
     .summary = "Blocks travel once around the ring; each rank keeps them and passes them on as they come.",
     .ordered = true,
     .steps = allgatherv_ring_steps,
     .step = allgatherv_ring_step,
     .params_words = allgatherv_ring_params_words,
     .fill_params = allgatherv_ring_fill_params},
    {.collective = Collective::kAllgatherv,
     .name = "bruck",
     .source = "Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997, with counts",
     .restriction = "every rank knows all counts, and the call carries their sum",
     .cost = "ceil(log2 P) alpha + N beta, N bytes in all, and N bytes copied; one alpha more in a round whose blocks "
             "pass P-1",
     .summary = "Each round fetches as many blocks as are there from the right; few messages, for small blocks.",
     .ordered = true,
     .steps = allgatherv_bruck_steps,
     .step = allgatherv_bruck_step,
     .scratch_bytes = allgatherv_bruck_scratch_bytes,
     .admits = allgatherv_bruck_admits,
     .params_words = allgatherv_bruck_params_words,
     .fill_params = allgatherv_bruck_fill_params},
    {.collective = Collective::kAllgatherv,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000, with counts",
     .restriction = "every rank knows all counts, and the call carries their sum",
     .cost = "with groups of g: 2 alpha + N beta within, (P/g - 1) alpha + N beta between, N bytes in all, and N "
             "bytes copied",
     .summary = "Leaders pack the blocks of their groups, pass them around a ring and back into the groups.",
     .ordered = true,
     .steps = build::steps_by_position<allgatherv_two_level_steps>,
     .step = build::step_by_position<allgatherv_two_level_step>,
     .scratch_bytes = build::scratch_by_position<allgatherv_two_level_scratch_bytes>,
     .admits = allgatherv_two_level_admits,
     .params_words = allgatherv_two_level_params_words,
     .fill_params = build::fill_by_position<allgatherv_two_level_fill_params>,
     .grouped = true},
}};

}  // namespace unisono::collectives
