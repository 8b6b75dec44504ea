// The algorithms of reduce-scatterv; each in a file of its own.
//
// Params: the count of each rank's block in words 0 .. P-1, where it stands in the input (bytes) in words
// P .. 2P-1.
//
// In place, the result goes to the begin of dst, where blocks of the input stand that may be needed still, and blocks
// of any length may overlap it by a part. So all algorithms gather the result in scratch and copy it there in the end.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"

namespace unisono::collectives {

bool reduce_scatterv_admits(const Call& call);
std::uint32_t reduce_scatterv_params_words(const Call& call);
void reduce_scatterv_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

std::uint32_t reduce_scatterv_pairwise_steps(const Call& call);
void reduce_scatterv_pairwise_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t reduce_scatterv_pairwise_scratch_bytes(const Call& call);

std::uint32_t reduce_scatterv_ring_steps(const Call& call);
void reduce_scatterv_ring_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t reduce_scatterv_ring_scratch_bytes(const Call& call);

std::uint32_t reduce_scatterv_linear_steps(const Call& call);
void reduce_scatterv_linear_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t reduce_scatterv_linear_scratch_bytes(const Call& call);

std::uint32_t reduce_scatterv_two_level_steps(const Call& call);
void reduce_scatterv_two_level_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t reduce_scatterv_two_level_scratch_bytes(const Call& call);
std::uint32_t reduce_scatterv_two_level_params_words(const Call& call);
void reduce_scatterv_two_level_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

inline constexpr std::array<Algorithm, 4> kReduceScatterv{{
    {.collective = Collective::kReduceScatterv,
     .name = "pairwise",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005 (its pairwise reduce-scatter), with counts",
     .restriction = "the call carries the sum of all counts",
     .cost = "(P-1) alpha + (P-1) m beta + (P-1) m gamma, m bytes in the largest block",
     .summary = "Every block goes straight to its rank, which adds what arrives; no rank waits for another's sum.",
     .ordered = false,
     .steps = reduce_scatterv_pairwise_steps,
     .step = reduce_scatterv_pairwise_step,
     .scratch_bytes = reduce_scatterv_pairwise_scratch_bytes,
     .admits = reduce_scatterv_admits,
     .params_words = reduce_scatterv_params_words,
     .fill_params = reduce_scatterv_fill_params},
    {.collective = Collective::kReduceScatterv,
     .name = "ring",
     .source = "Patarasuk and Yuan, JPDC 2009 (first half of the ring all-reduce), with counts",
     .restriction = "the call carries the sum of all counts",
     .cost = "(P-1) alpha + (P-1) m beta + (P-1) m gamma, m bytes in the largest block",
     .summary = "Partial sums travel once around the ring; every rank talks to its neighbours only.",
     .ordered = false,
     .steps = reduce_scatterv_ring_steps,
     .step = reduce_scatterv_ring_step,
     .scratch_bytes = reduce_scatterv_ring_scratch_bytes,
     .admits = reduce_scatterv_admits,
     .params_words = reduce_scatterv_params_words,
     .fill_params = reduce_scatterv_fill_params},
    {.collective = Collective::kReduceScatterv,
     .name = "linear",
     .source = "folklore (a linear reduction to each rank)",
     .restriction = "the call carries the sum of all counts",
     .cost = "P alpha + N beta, N bytes in all, (P-1) m gamma, m bytes in the largest block",
     .summary = "One rank after the other folds its block, in rank order; for operators that do not commute.",
     .ordered = true,
     .steps = reduce_scatterv_linear_steps,
     .step = reduce_scatterv_linear_step,
     .scratch_bytes = reduce_scatterv_linear_scratch_bytes,
     .admits = reduce_scatterv_admits,
     .params_words = reduce_scatterv_params_words,
     .fill_params = reduce_scatterv_fill_params},
    {.collective = Collective::kReduceScatterv,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000, with counts",
     .restriction = "the call carries the sum of all counts",
     .cost = "with groups of g: 2 alpha + (g-1) N (beta + gamma) within, (P/g - 1) (alpha + M (beta + gamma)) between, "
             "N bytes in all, M bytes in the largest group, and N bytes copied",
     .summary =
         "Leaders sum whole vectors of their groups, exchange ranges of blocks, and hand them out; in rank order.",
     .ordered = true,
     .steps = build::steps_by_position<reduce_scatterv_two_level_steps>,
     .step = build::step_by_position<reduce_scatterv_two_level_step>,
     .scratch_bytes = build::scratch_by_position<reduce_scatterv_two_level_scratch_bytes>,
     .admits = reduce_scatterv_admits,
     .params_words = reduce_scatterv_two_level_params_words,
     .fill_params = build::fill_by_position<reduce_scatterv_two_level_fill_params>,
     .grouped = true},
}};

}  // namespace unisono::collectives
