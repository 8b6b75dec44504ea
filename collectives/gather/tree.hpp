// Gather: subtrees collect their blocks and hand them up. `Tree` is Subtree or KnomialSubtree. Freestanding.
//
// Ranks are counted from the root on, so that a subtree's blocks are one range. An inner node collects
// them in scratch, itself first, and sends them up as one message; a leaf sends from src. At the root
// blocks lie by absolute rank: the one child whose range passes from P-1 to 0 sends it in two messages,
// cut there, and so everything arrives in its final place.
//
// Arrivals write different places and wait for nothing; the message up waits for all of them. Waiting
// goes from the root towards the leaves only.
#pragma once

#include <cstdint>

#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::build {

template <class Tree>
std::uint64_t gather_tree_scratch_bytes(const Call& call) {
  const Tree node = Tree::of(call);
  return node.is_root() || node.is_leaf() ? 0 : node.span * call.count * element_bytes(call);
}

template <class Tree>
std::uint32_t gather_tree_rounds(const Call& call) {
  return Tree::of(call).children() + 2;
}

template <class Tree>
void gather_tree_round(const Call& call, std::uint32_t s, Emit& emit) {
  const Tree node = Tree::of(call);
  const std::uint64_t block = call.count * element_bytes(call);
  const Place own{Region::kSrc};

  if (s == 0) {
    if (node.is_root() ? call.in_place : node.is_leaf()) return;
    emit(Build(call).take(own).keep(node.is_root() ? dst(call.rank * block) : scratch()).count(call.count));
    return;
  }
  if (s <= node.children()) {
    const Tree child = node.child(s - 1);
    if (!node.is_root()) {
      const Place place = scratch((child.relative - node.relative) * block);
      emit(Build(call).arrive(child.rank(), 0).keep(place).count(child.span * call.count));
      return;
    }
    const std::uint32_t part = child.before_wrap();
    emit(Build(call).arrive(child.rank(), 0).keep(dst(child.rank() * block)).count(part * call.count));
    if (part < child.span) {
      emit(Build(call).arrive(child.rank(), 1).keep(dst()).count((child.span - part) * call.count));
    }
    return;
  }
  if (node.is_root()) return;
  const std::uint32_t parent = node.parent().rank();
  const std::uint32_t part = node.parent().is_root() ? node.before_wrap() : node.span;
  const std::uint32_t collected = emit.moves();  // moves that filled scratch
  const auto up = [&](std::uint32_t from, std::uint32_t to, std::uint32_t tag) {
    Build move(call);
    move.take((node.is_leaf() ? own : scratch()) + from * block).send(parent, tag).count((to - from) * call.count);
    for (std::uint32_t i = 0; i < collected; ++i) move.after(emit.moves() - i);
    emit(move);
  };
  up(0, part, 0);
  if (part < node.span) up(part, node.span, 1);
}

template <class Tree>
std::uint32_t gather_tree_steps(const Call& call) {
  return steps_for(gather_tree_rounds<Tree>(call), 2);
}

template <class Tree>
void gather_tree_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, gather_tree_rounds<Tree>(call), 2,
             [&](std::uint32_t round) { gather_tree_round<Tree>(call, round, emit); });
}

}  // namespace unisono::build
