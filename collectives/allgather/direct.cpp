// Direct all-gather: every rank writes its block into every dst.
//
// Source: this project. Cost: sigma + alpha + P n beta, n bytes a block; sigma is the entry of all ranks.
//
// One move: the block is read once and written to its place in the own dst (it stands there in place) and in all
// others. All ranks copy the same, and each block of a dst is written by one rank.
#include "collectives/direct.hpp"

#include "collectives/allgather/allgather.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool allgather_direct_admits(const Call& call) { return admits_direct(call); }

std::uint32_t allgather_direct_steps(const Call& call) { return call.count == 0 ? 0 : 1; }

void allgather_direct_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  if (call.size == 1 && call.in_place) return;
  const std::uint64_t block = call.rank * call.count * element_bytes(call);
  Build own(call);
  own.take(input(call, block)).count(call.count);
  if (!call.in_place) own.keep(dst(block));
  store_to(own, emit, call.size - 1, dst(block), [&](std::uint32_t i) { return other(call, i); });
  emit(own);
  const auto everybody = [](std::uint32_t) { return true; };
  leave(call, emit, 1, everybody, everybody);
}

}  // namespace unisono::collectives
