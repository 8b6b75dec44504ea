// Direct reduce-scatter: every rank sums its block, straight from all.
//
// Source: this project. Cost: sigma + alpha + P n beta + (P-1) n gamma, n bytes a block; sigma is the entry of all
// ranks. In place n beta more.
//
// One move: block r of every rank's src, added in rank order into dst of rank r. In place, rank r keeps the sum in its
// own block r, which nobody else reads; it belongs at the begin of dst, where rank 0 reads the block of rank r that it
// sums. So the others move their sum there when rank 0 has said that it is done.
#include "collectives/direct.hpp"

#include "collectives/reduce_scatter/reduce_scatter.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool reduce_scatter_direct_admits(const Call& call) { return admits_direct(call); }

std::uint32_t reduce_scatter_direct_steps(const Call& call) { return call.count == 0 ? 0 : 1; }

void reduce_scatter_direct_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const std::uint64_t block = call.rank * call.count * element_bytes(call);
  if (call.size == 1) {
    if (!call.in_place) emit(Build(call).take(src()).keep(dst()).count(call.count));
    return;
  }
  Build sum(call);
  sum.keep(dst(call.in_place ? block : 0)).count(call.count);
  fetch_from_all(sum, emit, call, input(call) + block);
  emit(sum);
  const auto everybody = [](std::uint32_t) { return true; };
  leave(call, emit, 1, everybody, everybody);
  if (call.in_place && call.rank != 0)
    emit(Build(call).take(dst(block)).keep(dst()).count(call.count).after(1).after(3));
}

}  // namespace unisono::collectives
