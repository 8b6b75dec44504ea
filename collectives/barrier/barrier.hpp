// The algorithms of barrier; each in a file of its own.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"
#include "collectives/by_position.hpp"
#include "collectives/tree_place.hpp"

namespace unisono::collectives {

std::uint32_t barrier_dissemination_steps(const Call& call);
void barrier_dissemination_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t barrier_flat_steps(const Call& call);
void barrier_flat_step(const Call& call, std::uint32_t s, Emit& emit);
bool barrier_flat_admits(const Call& call);

std::uint32_t barrier_two_level_steps(const Call& call);
void barrier_two_level_step(const Call& call, std::uint32_t s, Emit& emit);

std::uint32_t barrier_switch_steps(const Call& call);
void barrier_switch_step(const Call& call, std::uint32_t s, Emit& emit);

inline constexpr std::array<Algorithm, 4> kBarrier{{
    {.collective = Collective::kBarrier,
     .name = "dissemination",
     .source = "Hensgen, Finkel and Manber, IJPP 1988; Hoefler et al., IPDPS 2006 (k-1 signals in a round)",
     .restriction = "",
     .cost = "ceil(log_k P) alpha",
     .summary = "In round s each rank signals k-1 ranks k^s apart, once it has heard from all rounds before; k is the "
                "radix, as "
                "in dissemination:4, or 2.",
     .ordered = true,
     .steps = barrier_dissemination_steps,
     .step = barrier_dissemination_step,
     .default_radix = 2},
    {.collective = Collective::kBarrier,
     .name = "flat",
     .source = "Bruck et al., IEEE TPDS 1997 (one round, P-1 ports)",
     .restriction = "at most 64 ranks",
     .cost = "alpha",
     .summary = "Everybody signals everybody; one round.",
     .ordered = true,
     .steps = barrier_flat_steps,
     .step = barrier_flat_step,
     .admits = barrier_flat_admits},
    {.collective = Collective::kBarrier,
     .name = "two_level",
     .source = "Karonis et al., IPDPS 2000",
     .restriction = "",
     .cost = "with groups: 2 alpha within, ceil(log2) of their number times alpha between",
     .summary = "Groups signal their leaders, leaders each other, and back.",
     .ordered = true,
     .steps = build::steps_by_position<barrier_two_level_steps>,
     .step = build::step_by_position<barrier_two_level_step>,
     .grouped = true},
    {.collective = Collective::kBarrier,
     .name = "switch",
     .source = "ACiS (Haghi, thesis 2023); SHARP (Graham et al., COMHPC 2016)",
     .restriction = "a tree of members and switches",
     .cost = "2 d alpha over d levels of switches",
     .summary = "Signals go up the tree of switches and down again.",
     .ordered = true,
     .steps = barrier_switch_steps,
     .step = barrier_switch_step,
     .admits = build::admits_tree,
     .switched = true},
}};

}  // namespace unisono::collectives
