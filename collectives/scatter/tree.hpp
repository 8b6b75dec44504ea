// Scatter: subtrees receive their blocks and hand them on. `Tree` is Subtree or KnomialSubtree. Freestanding.
//
// Ranks are counted from the root on, so that a subtree's blocks are one range. An inner node receives
// its range into scratch, sends each child its part, the largest first, and copies its own block to
// dst; a leaf receives into dst. At the root blocks lie by absolute rank: the range of the one child
// that passes from P-1 to 0 is cut there and goes as two messages.
//
// All that leaves an inner node waits for what arrived there. Waiting goes from the leaves towards the
// root only. In place the root's own block stays where it is.
#pragma once

#include <cstdint>

#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::build {

template <class Tree>
std::uint64_t scatter_tree_scratch_bytes(const Call& call) {
  const Tree node = Tree::of(call);
  return node.is_root() || node.is_leaf() ? 0 : node.span * call.count * element_bytes(call);
}

template <class Tree>
std::uint32_t scatter_tree_rounds(const Call& call) {
  return Tree::of(call).children() + 2;
}

template <class Tree>
void scatter_tree_round(const Call& call, std::uint32_t s, Emit& emit) {
  const Tree node = Tree::of(call);
  const std::uint64_t block = call.count * element_bytes(call);
  const Place source{Region::kSrc};

  if (s == 0) {
    if (node.is_root()) return;
    const std::uint32_t parent = node.parent().rank();
    const std::uint32_t part = node.parent().is_root() ? node.before_wrap() : node.span;
    const Place landing = node.is_leaf() ? dst() : scratch();
    emit(Build(call).arrive(parent, 0).keep(landing).count(part * call.count));
    if (part < node.span) {
      emit(Build(call).arrive(parent, 1).keep(landing + part * block).count((node.span - part) * call.count));
    }
    return;
  }
  const std::uint32_t arrivals =
      node.is_root() ? 0 : (node.parent().is_root() && node.before_wrap() < node.span ? 2 : 1);
  const auto ordered = [&](Build move) {
    for (std::uint32_t i = 0; i < arrivals; ++i) move.after(emit.moves() - i);
    emit(move);
  };
  if (s <= node.children()) {
    const Tree child = node.child(node.children() - s);
    if (!node.is_root()) {
      const Place place = scratch((child.relative - node.relative) * block);
      ordered(Build(call).take(place).send(child.rank(), 0).count(child.span * call.count));
      return;
    }
    const std::uint32_t part = child.before_wrap();
    emit(Build(call).take(source + child.rank() * block).send(child.rank(), 0).count(part * call.count));
    if (part < child.span) {
      emit(Build(call).take(source).send(child.rank(), 1).count((child.span - part) * call.count));
    }
    return;
  }
  if (node.is_root()) {
    if (!call.in_place) emit(Build(call).take(source + call.rank * block).keep(dst()).count(call.count));
  } else if (!node.is_leaf()) {
    ordered(Build(call).take(scratch()).keep(dst()).count(call.count));
  }
}

template <class Tree>
std::uint32_t scatter_tree_steps(const Call& call) {
  return steps_for(scatter_tree_rounds<Tree>(call), 2);
}

template <class Tree>
void scatter_tree_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, scatter_tree_rounds<Tree>(call), 2,
             [&](std::uint32_t round) { scatter_tree_round<Tree>(call, round, emit); });
}

}  // namespace unisono::build
