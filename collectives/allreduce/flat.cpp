// Flat all-reduce: everybody sends everybody the whole vector, and folds what comes in rank order.
//
// Source: the one-round exchange of Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997, section 2 (P-1 ports).
// Cost: alpha + (P-1) n beta + (P-1) n gamma.
//
// One round: no rank hears of another through a third. With more ranks than cores, where a round costs a change of
// context, that counts for more than the bytes. The message of a rank to itself puts its own vector at its place in the
// fold, so the fold rounds once and all ranks get the same bits. In place the fold goes through scratch: dst may be
// overwritten only when it has been sent, and a send may last until its receivers listen.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/build.hpp"
#include "collectives/peers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool allreduce_flat_admits(const Call& call) { return call.size <= kFlatRanks; }

std::uint32_t allreduce_flat_steps(const Call& call) { return call.size == 1 && call.in_place ? 0 : 1; }

std::uint64_t allreduce_flat_scratch_bytes(const Call& call) {
  return call.in_place && call.size > 1 ? call.count * element_bytes(call) : 0;
}

void allreduce_flat_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  if (call.size == 1) {
    emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  Build out(call);
  out.take(input(call)).count(call.count);
  send_to(out, emit, call.size, 0, [&](std::uint32_t i) { return plus(call.rank, i, call.size); });
  emit(out);
  Build in(call);
  arrive_from(in, emit, call.size, 0, [](std::uint32_t i) { return i; });
  emit(in.keep(call.in_place ? scratch() : dst()).count(call.count));
  if (call.in_place) emit(Build(call).take(scratch()).keep(dst()).count(call.count).after(1).after(2));
}

}  // namespace unisono::collectives
