// Flat all-gather: everybody sends everybody its block.
//
// Source: the one-round exchange of Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997, section 2 (P-1 ports).
// Cost: alpha + (P-1) n beta, n bytes a block.
//
// One round instead of log2 P: with more ranks than cores each round costs a change of context.
#include "collectives/allgather/allgather.hpp"
#include "collectives/build.hpp"
#include "collectives/peers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

// A send may last until all its receivers listen, so the arrivals of all must be in the window with it.
bool allgather_flat_admits(const Call& call) { return call.size <= kWindow; }

std::uint32_t allgather_flat_steps(const Call& call) { return call.size; }

void allgather_flat_step(const Call& call, std::uint32_t s, Emit& emit) {
  const auto block = [&](std::uint32_t rank) { return rank * call.count * element_bytes(call); };
  if (s == 0) {
    Build own(call);
    own.take(input(call, block(call.rank))).count(call.count);
    send_to(own, emit, call.size - 1, 0, [&](std::uint32_t i) { return plus(call.rank, i + 1, call.size); });
    if (!call.in_place) own.keep(dst(block(call.rank)));
    if (call.size > 1 || !call.in_place) emit(own);
    return;
  }
  const std::uint32_t peer = minus(call.rank, s, call.size);
  emit(Build(call).arrive(peer, 0).keep(dst(block(peer))).count(call.count));
}

}  // namespace unisono::collectives
