// Linear broadcast: the root sends to everyone, in one move.
//
// Source: ACCL+ section 4.2.4 (one-to-all). Cost: alpha + (P-1) n beta.
//
// The root's only move reads its vector once and names all others as a list; a switch turns that into
// a multicast. Each other rank has one move, so there is nothing to order.
#include "collectives/bcast/bcast.hpp"
#include "collectives/build.hpp"
#include "collectives/peers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t bcast_linear_steps(const Call& call) { return call.size == 1 ? 0 : 1; }

void bcast_linear_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  Build move(call);
  move.count(call.count);
  if (call.rank == call.root) {
    move.take(dst());
    send_to(move, emit, call.size - 1, 0, [&](std::uint32_t i) { return plus(call.root, i + 1, call.size); });
  } else {
    move.arrive(call.root, 0).keep(dst());
  }
  emit(move);
}

}  // namespace unisono::collectives
