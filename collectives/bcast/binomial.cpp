// Binomial broadcast.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005. Cost: ceil(log2 P) (alpha + n beta); segments stream, so for large vectors the
// depth costs a segment a level.
//
// A rank stores what its parent sends and passes it to all its children in the same move; the child
// with the deepest subtree comes first. One move a rank: nothing to order.
#include "collectives/bcast/bcast.hpp"
#include "collectives/peers.hpp"
#include "collectives/subtree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t bcast_binomial_steps(const Call& call) { return call.size == 1 ? 0 : 1; }

void bcast_binomial_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const Subtree node = Subtree::of(call);
  const std::uint32_t children = node.children();
  Build move(call);
  move.count(call.count);
  if (node.is_root()) {
    move.take(dst());
  } else {
    move.arrive(node.parent().rank(), 0).keep(dst());
  }
  send_to(move, emit, children, 0, [&](std::uint32_t i) { return node.child(children - 1 - i).rank(); });
  emit(move);
}

}  // namespace unisono::collectives
