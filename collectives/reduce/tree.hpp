// Reduction over trees, in rank order for any root: `Tree` is Subtree or KnomialSubtree. Freestanding.
//
// Two trees meet in the root: one over the ranks from the root upwards, one over those from the root downwards. In
// either a node's subtree is an interval of ranks that begins with the node and the children's intervals follow in
// order; so folding the children in order keeps rank order, from the left in the lower tree. A rank folds its operand
// and its children and sends the result up in one move: no scratch, and nothing to order. The root's two moves are
// explained in sides.hpp.
#pragma once

#include <cstdint>

#include "collectives/reduce/sides.hpp"

namespace unisono::build {

template <class Tree>
void reduce_over_tree(const Call& call, Emit& emit) {
  const std::uint32_t root = call.root;
  const std::uint32_t above = call.size - root;  // vertices of the upper tree, root included
  const std::uint32_t below = root + 1;          // and of the lower one
  if (call.rank == root) {
    const Tree upper = Tree::at(call, above, 0, 0);
    const Tree lower = Tree::at(call, below, 0, 0);
    fold_at_root(
        call, emit, upper.children(), [&](std::uint32_t i) { return root + upper.child(i).relative; }, lower.children(),
        [&](std::uint32_t i) { return root - lower.child(i).relative; });
    return;
  }
  Build move(call);
  move.take(reduce_input(call)).count(call.count);
  if (call.rank > root) {
    const Tree node = Tree::at(call, above, 0, call.rank - root);
    arrive_from(move, emit, node.children(), 0, [&](std::uint32_t i) { return root + node.child(i).relative; });
    move.send(root + node.parent().relative, 0);
  } else {
    const Tree node = Tree::at(call, below, 0, root - call.rank);
    arrive_from(move, emit, node.children(), 0, [&](std::uint32_t i) { return root - node.child(i).relative; });
    move.arrival_first(node.children() != 0).send(root - node.parent().relative, 0);
  }
  emit(move);
}

}  // namespace unisono::build
