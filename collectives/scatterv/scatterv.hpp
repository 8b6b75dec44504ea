// The algorithms of scatterv; each in a file of its own.
//
// Params: the count of each rank's block in words 0 .. P-1, where it stands in the root's src (bytes)
// in words P .. 2P-1, then what an algorithm adds.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"

namespace unisono::collectives {

std::uint32_t scatterv_linear_steps(const Call& call);
void scatterv_linear_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint32_t scatterv_linear_params_words(const Call& call);
void scatterv_linear_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

std::uint32_t scatterv_binomial_steps(const Call& call);
void scatterv_binomial_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t scatterv_binomial_scratch_bytes(const Call& call);
bool scatterv_binomial_admits(const Call& call);
std::uint32_t scatterv_binomial_params_words(const Call& call);
void scatterv_binomial_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

std::uint32_t scatterv_two_level_steps(const Call& call);
void scatterv_two_level_step(const Call& call, std::uint32_t s, Emit& emit);
std::uint64_t scatterv_two_level_scratch_bytes(const Call& call);
bool scatterv_two_level_admits(const Call& call);
std::uint32_t scatterv_two_level_params_words(const Call& call);
void scatterv_two_level_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words);

inline constexpr std::array<Algorithm, 3> kScatterv{{
    {.collective = Collective::kScatterv,
     .name = "linear",
     .source = "folklore",
     .restriction = "",
     .cost = "(P-1) alpha + N beta at the root, N bytes in all",
     .summary = "The root sends each rank its block; a rank needs to know its own count only.",
     .ordered = true,
     .steps = scatterv_linear_steps,
     .step = scatterv_linear_step,
     .params_words = scatterv_linear_params_words,
     .fill_params = scatterv_linear_fill_params},
    {.collective = Collective::kScatterv,
     .name = "binomial",
     .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005 (its scatter), with counts",
     .restriction = "every rank knows all counts, and the call carries their sum",
     .cost = "ceil(log2 P) alpha + N beta, N bytes in all, and N bytes copied at the root",
     .summary = "A subtree gets its blocks as one message and hands half of what is left to each child.",
     .ordered = true,
     .steps = scatterv_binomial_steps,
     .step = scatterv_binomial_step,
     .scratch_bytes = scatterv_binomial_scratch_bytes,
     .admits = scatterv_binomial_admits,
     .params_words = scatterv_binomial_params_words,
     .fill_params = scatterv_binomial_fill_params},
    {.collective = Collective::kScatterv,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000, with counts",
     .restriction = "every rank knows all counts, and the call carries their sum",
     .cost = "with groups of g: 2 alpha + N beta, N bytes in all, and N bytes copied at the root",
     .summary = "The root packs a group's blocks and sends them to its leader as one message, who hands them out.",
     .ordered = true,
     .steps = build::steps_by_position<scatterv_two_level_steps>,
     .step = build::step_by_position<scatterv_two_level_step>,
     .scratch_bytes = build::scratch_by_position<scatterv_two_level_scratch_bytes>,
     .admits = scatterv_two_level_admits,
     .params_words = scatterv_two_level_params_words,
     .fill_params = build::fill_by_position<scatterv_two_level_fill_params>,
     .grouped = true},
}};

}  // namespace unisono::collectives
