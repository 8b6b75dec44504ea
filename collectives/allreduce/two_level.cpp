// Two-level all-reduce: within groups, between their leaders, back into the groups.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000. Cost, with groups of g:
// 2 (alpha + (g-1) n beta) + (g-1) n gamma within, log2(P/g) (alpha + n beta + n gamma) between.
//
// doubling.hpp explains moves, buffers and dependencies.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/allreduce/doubling.hpp"

namespace unisono::collectives {

namespace {

constexpr build::Doubling two_level(const Call& call) { return {call, build::Levels(call)}; }

}  // namespace

std::uint32_t allreduce_two_level_steps(const Call& call) { return two_level(call).steps(); }

void allreduce_two_level_step(const Call& call, std::uint32_t s, Emit& emit) { two_level(call).step(s, emit); }

std::uint64_t allreduce_two_level_scratch_bytes(const Call& call) { return two_level(call).scratch_bytes(); }

}  // namespace unisono::collectives
