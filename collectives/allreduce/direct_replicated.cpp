// Replicated direct all-reduce: every rank reads all vectors and keeps the whole sum.
//
// Source: this project. Cost: sigma + alpha + n P beta + n (P-1) gamma; sigma is the entry of all ranks.
//
// All ranks do the same work, in rank order and so with the same bits, and no rank writes memory of another: for small
// vectors on few ranks, where lines that two ranks write cost more than adding twice. Not in place: others still read
// what the sum would overwrite.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/direct.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool allreduce_direct_replicated_admits(const Call& call) { return admits_direct(call) && !call.in_place; }

std::uint32_t allreduce_direct_replicated_steps(const Call& call) { return call.count == 0 ? 0 : 1; }

void allreduce_direct_replicated_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  Build all(call);
  all.keep(dst()).count(call.count);
  if (call.size == 1) {
    emit(all.take(src()));
    return;
  }
  fetch_from_all(all, emit, call, src());
  emit(all);
  const auto everybody = [](std::uint32_t) { return true; };
  leave(call, emit, 1, everybody, everybody);
}

}  // namespace unisono::collectives
