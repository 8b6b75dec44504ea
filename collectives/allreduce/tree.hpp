// All-reduce up and down a tree with rank 0 as its root: `Tree` is Subtree or KnomialSubtree. Freestanding.
//
// On the way up a rank folds its operand and its children, in rank order, and sends the result on, in
// one move; on the way down it keeps what arrives and passes it to its children, in one move. Rank 0
// does both in one. No dependency is needed: in place, dst is overwritten by the result, element by
// element, which contains this rank's operand and so was sent after that had been read.
#pragma once

#include <cstdint>

#include "collectives/peers.hpp"

namespace unisono::build {

template <class Tree>
void allreduce_over_tree(const Call& call, Emit& emit) {
  constexpr std::uint32_t kUp = 0;
  constexpr std::uint32_t kDown = 1;
  const Tree node = Tree::at(call, call.size, 0, call.rank);
  const std::uint32_t children = node.children();
  if (call.size == 1 && call.in_place) return;

  const auto deliver = [&](Build& result) {
    result.keep(dst());
    send_to(result, emit, children, kDown, [&](std::uint32_t i) { return node.child(children - 1 - i).rank(); });
    emit(result);
  };
  Build up(call);
  up.take(input(call)).count(call.count);
  arrive_from(up, emit, children, kUp, [&](std::uint32_t i) { return node.child(i).rank(); });
  if (node.is_root()) {
    deliver(up);
    return;
  }
  emit(up.send(node.parent().rank(), kUp));
  Build down(call);
  deliver(down.count(call.count).arrive(node.parent().rank(), kDown));
}

}  // namespace unisono::build
