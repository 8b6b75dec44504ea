// Flat barrier: everybody signals everybody.
//
// Source: the one-round exchange of Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997, section 2 (P-1 ports).
// Cost: alpha.
//
// One round instead of log2 P: with more ranks than cores each round costs a change of context.
#include "collectives/barrier/barrier.hpp"
#include "collectives/build.hpp"
#include "collectives/peers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool barrier_flat_admits(const Call& call) { return call.size <= kFlatRanks; }

std::uint32_t barrier_flat_steps(const Call& call) { return call.size == 1 ? 0 : 1; }

void barrier_flat_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const auto peer_at = [&](std::uint32_t i) { return plus(call.rank, i + 1, call.size); };
  Build signal(call);
  send_to(signal, emit, call.size - 1, 0, peer_at);
  emit(signal.signal());
  Build await(call);
  arrive_from(await, emit, call.size - 1, 0, peer_at);
  emit(await.signal());
}

}  // namespace unisono::collectives
