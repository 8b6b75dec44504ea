// The primitives: programs of one move at most.
#pragma once

#include <array>

#include "collectives/algorithm.hpp"

namespace unisono::collectives {

std::uint32_t nop_direct_steps(const Call& call);
void nop_direct_step(const Call& call, std::uint32_t s, Emit& emit);

/// One step; of all primitives that move data.
std::uint32_t primitive_steps(const Call& call);
void copy_direct_step(const Call& call, std::uint32_t s, Emit& emit);
void combine_direct_step(const Call& call, std::uint32_t s, Emit& emit);
void send_direct_step(const Call& call, std::uint32_t s, Emit& emit);
void recv_direct_step(const Call& call, std::uint32_t s, Emit& emit);
void put_direct_step(const Call& call, std::uint32_t s, Emit& emit);
void get_direct_step(const Call& call, std::uint32_t s, Emit& emit);

inline constexpr std::array<Algorithm, 7> kPrimitives{{
    {.collective = Collective::kNop,
     .name = "direct",
     .source = "ACCL section IV.D",
     .restriction = "",
     .cost = "0",
     .summary = "No move at all; what remains is the cost of a call.",
     .ordered = true,
     .steps = nop_direct_steps,
     .step = nop_direct_step},
    {.collective = Collective::kCopy,
     .name = "direct",
     .source = "ACCL section IV.D",
     .restriction = "",
     .cost = "n bytes read and written",
     .summary = "One move from src to dst.",
     .ordered = true,
     .steps = primitive_steps,
     .step = copy_direct_step},
    {.collective = Collective::kCombine,
     .name = "direct",
     .source = "ACCL section IV.D",
     .restriction = "",
     .cost = "n gamma",
     .summary = "One move combines src with dst into dst.",
     .ordered = true,
     .steps = primitive_steps,
     .step = combine_direct_step},
    {.collective = Collective::kSend,
     .name = "direct",
     .source = "ACCL section IV.D",
     .restriction = "",
     .cost = "alpha + n beta",
     .summary = "One move sends src to the peer.",
     .ordered = true,
     .steps = primitive_steps,
     .step = send_direct_step},
    {.collective = Collective::kRecv,
     .name = "direct",
     .source = "ACCL section IV.D",
     .restriction = "",
     .cost = "alpha + n beta",
     .summary = "One move stores the peer's message in dst.",
     .ordered = true,
     .steps = primitive_steps,
     .step = recv_direct_step},
    {.collective = Collective::kPut,
     .name = "direct",
     .source = "ACCL+ section 4.2.1",
     .restriction = "",
     .cost = "alpha + n beta",
     .summary = "One move writes src into the peer's window.",
     .ordered = true,
     .steps = primitive_steps,
     .step = put_direct_step},
    {.collective = Collective::kGet,
     .name = "direct",
     .source = "ACCL+ section 4.2.1",
     .restriction = "",
     .cost = "2 alpha + n beta",
     .summary = "One move reads the peer's window into dst.",
     .ordered = true,
     .steps = primitive_steps,
     .step = get_direct_step},
}};

}  // namespace unisono::collectives
