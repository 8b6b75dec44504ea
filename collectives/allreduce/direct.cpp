// Direct all-reduce: every rank sums one share of the vector, straight from all and straight to all.
//
// Source: this project. Cost: sigma + alpha + n (P+1)/P beta + n (P-1)/P gamma; sigma is the entry of all ranks.
//
// Each rank reads its share of the vector from every rank's memory, adds in rank order and writes the sum into
// every rank's dst, in one move. Shares are whole cache lines, so no line is written by two ranks. Nobody else
// touches a share, hence in place needs nothing more: element k is read from all before it is written to all.
// Then each rank tells the others that it is done with their memory.
#include "collectives/direct.hpp"

#include "collectives/allreduce/allreduce.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool allreduce_direct_admits(const Call& call) { return admits_direct(call); }

std::uint32_t allreduce_direct_steps(const Call& call) { return call.count == 0 ? 0 : 1; }

void allreduce_direct_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  if (call.size == 1) {
    if (!call.in_place) emit(Build(call).take(src()).keep(dst()).count(call.count));
    return;
  }
  const LineSplit split = shares(call);
  const std::uint64_t offset = split.offset(call.rank);
  const bool works = split.count(call.rank) != 0;
  if (works) {
    Build share(call);
    share.keep(dst(offset)).count(split.count(call.rank));
    fetch_from_all(share, emit, call, input(call) + offset);
    store_to(share, emit, call.size - 1, dst(offset), [&](std::uint32_t i) { return other(call, i); });
    emit(share);
  }
  leave(
      call, emit, 1, [&](std::uint32_t) { return works; }, [&](std::uint32_t peer) { return split.count(peer) != 0; });
}

}  // namespace unisono::collectives
