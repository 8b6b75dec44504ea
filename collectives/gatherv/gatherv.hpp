// The algorithms of gatherv; each in a file of its own.
//
// Params: the count of each rank's block in words 0 .. P-1, where it stands in the root's dst (bytes)
// in words P .. 2P-1, then what an algorithm adds.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"

namespace unisono::collectives {

std::uint32_t gatherv_linear_steps(const Call& call);
void gatherv_linear_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint32_t gatherv_linear_params_words(const Call& call);
void gatherv_linear_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

std::uint32_t gatherv_binomial_steps(const Call& call);
void gatherv_binomial_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t gatherv_binomial_scratch_bytes(const Call& call);
bool gatherv_binomial_admits(const Call& call);
std::uint32_t gatherv_binomial_params_words(const Call& call);
void gatherv_binomial_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

std::uint32_t gatherv_two_level_steps(const Call& call);
void gatherv_two_level_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t gatherv_two_level_scratch_bytes(const Call& call);
bool gatherv_two_level_admits(const Call& call);
std::uint32_t gatherv_two_level_params_words(const Call& call);
void gatherv_two_level_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

inline constexpr std::array<Algorithm, 3> kGatherv{{
    {.collective = Collective::kGatherv,
     .name = "linear",
     .source = "folklore",
     .restriction = "",
     .cost = "(P-1) alpha + N beta at the root, N bytes in all",
     .summary = "Every rank sends to the root; a rank needs to know its own count only.",
     .ordered = true,
     .steps = gatherv_linear_steps,
     .step = gatherv_linear_step,
     .params_words = gatherv_linear_params_words,
     .fill_params = gatherv_linear_fill_params},
    {.collective = Collective::kGatherv,
     .name = "binomial",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005 (its gather), with counts",
     .restriction = "every rank knows all counts, and the call carries their sum",
     .cost = "ceil(log2 P) alpha + N beta, N bytes in all, and N bytes copied at the root",
     .summary = "Subtrees of doubling size collect their blocks and hand them up as one message.",
     .ordered = true,
     .steps = gatherv_binomial_steps,
     .step = gatherv_binomial_step,
     .scratch_bytes = gatherv_binomial_scratch_bytes,
     .admits = gatherv_binomial_admits,
     .params_words = gatherv_binomial_params_words,
     .fill_params = gatherv_binomial_fill_params},
    {.collective = Collective::kGatherv,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000, with counts",
     .restriction = "every rank knows all counts, and the call carries their sum",
     .cost = "with groups of g: 2 alpha + N beta, N bytes in all, and N bytes copied at the root",
     .summary = "The leader of a group packs its blocks and sends them as one message; the root unpacks them.",
     .ordered = true,
     .steps = build::steps_by_position<gatherv_two_level_steps>,
     .step = build::step_by_position<gatherv_two_level_step>,
     .scratch_bytes = build::scratch_by_position<gatherv_two_level_scratch_bytes>,
     .admits = gatherv_two_level_admits,
     .params_words = gatherv_two_level_params_words,
     .fill_params = build::fill_by_position<gatherv_two_level_fill_params>,
     .grouped = true},
}};

}  // namespace unisono::collectives
