// Broadcast over a tree: `Tree` is Subtree or KnomialSubtree. Freestanding.
//
// A rank stores what its parent sends and passes it to all its children in the same move; the child with the deepest
// subtree comes first. One move a rank: nothing to order.
#pragma once

#include <cstdint>

#include "collectives/peers.hpp"

namespace unisono::build {

template <class Tree>
void bcast_over_tree(const Call& call, Emit& emit) {
  const Tree node = Tree::of(call);
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

}  // namespace unisono::build
