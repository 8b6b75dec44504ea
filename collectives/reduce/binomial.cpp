// Binomial reduction, in rank order for any root.
//
// Source: Thakur, Rabenseifner and Gropp, IJHPCA 2005. Cost: ceil(log2 P) (alpha + n beta + n gamma);
// segments stream, so for large vectors a level costs a segment.
//
// Two binomial trees meet in the root: one over the ranks from the root upwards, one over those from
// the root downwards. In either a node's subtree is an interval of ranks that begins with the node and
// the children's intervals follow in order; so folding the children in order keeps rank order, from the
// left in the lower tree. A rank folds its operand and its children and sends the result up in one
// move: no scratch, and nothing to order. The root's two moves are explained in sides.hpp.
#include "collectives/reduce/reduce.hpp"
#include "collectives/reduce/sides.hpp"
#include "collectives/subtree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t reduce_binomial_steps(const Call& /*call*/) { return 1; }

void reduce_binomial_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const std::uint32_t root = call.root;
  const std::uint32_t above = call.size - root;  // vertices of the upper tree, root included
  const std::uint32_t below = root + 1;          // and of the lower one
  if (call.rank == root) {
    fold_at_root(
        call, emit, log2_ceil(above), [=](std::uint32_t i) { return root + (std::uint32_t{1} << i); }, log2_ceil(below),
        [=](std::uint32_t i) { return root - (std::uint32_t{1} << i); });
    return;
  }
  Build move(call);
  move.take(reduce_input(call)).count(call.count);
  if (call.rank > root) {
    const Subtree node = Subtree::at(above, 0, call.rank - root);
    arrive_from(move, emit, node.children(), 0, [&](std::uint32_t i) { return root + node.child(i).relative; });
    move.send(root + node.parent().relative, 0);
  } else {
    const Subtree node = Subtree::at(below, 0, root - call.rank);
    arrive_from(move, emit, node.children(), 0, [&](std::uint32_t i) { return root - node.child(i).relative; });
    move.arrival_first(node.children() != 0).send(root - node.parent().relative, 0);
  }
  emit(move);
}

}  // namespace unisono::collectives
