// A rank's place in a tree of members and switches, and the moves that go up and down it. Freestanding.
//
// The same text makes the programs of switches, of members, and of members that stand in for switches where there are
// none. A member stands in for the switches along the tree's left edge above it: those whose first child it is, or
// whose first child it plays already. What it folds there begins with its own operand, so the order of every fold, and
// with it every bit, is that of the switches.
#pragma once

#include <cstdint>

#include "collectives/peers.hpp"
#include "core/facts.hpp"
#include "core/tree.hpp"

namespace unisono::build {

/// Whether the program is that of a switch.
constexpr bool is_virtual(const Call& call) { return !(call.tree == nullptr) && call.rank >= call.size; }

class TreePlace {
 public:
  /// Of a call that has a tree.
  constexpr explicit TreePlace(const Call& call)
      : tree_(pointer_to(call.tree)),
        rank_(call.rank),
        size_(call.size),
        any_(folds_in_any_order(call.func, call.dtype)) {
    lowest_ = is_switch() ? rank_ : next(rank_);
    for (std::uint32_t node = lowest_; node != kNoNode; node = next(node)) {
      top_ = node;
      below_ += children(node);
    }
    std::uint32_t highest = rank_;
    while (!is_switch() && played_above(highest) != kNoNode) highest = played_above(highest);
    const std::uint32_t up = parent(highest);
    for (std::uint32_t node = up; node != kNoNode && above_ == kNoNode; node = parent(node)) {
      if (first(node + 1) - first(node) > 1) above_ = host(up);
    }
    if (is_switch() && above_ == kNoNode && below_ == 1) below_ = 0;
  }

  constexpr bool is_switch() const { return rank_ >= size_; }
  /// Switches that this rank plays and that have others below, from the lowest on; kNoNode: none, or no more.
  constexpr std::uint32_t lowest() const { return lowest_; }
  constexpr std::uint32_t next(std::uint32_t node) const {
    if (is_switch()) return kNoNode;
    do {
      node = played_above(node);
    } while (node != kNoNode && children(node) == 0);
    return node;
  }
  /// The last of them; kNoNode if there is none.
  constexpr std::uint32_t top() const { return top_; }
  /// Whether what is folded at one of them is folded on at another.
  constexpr bool keeps_partial() const { return lowest_ != top_; }
  /// Who plays the switch above; kNoNode at the top of the tree, and where nobody else hangs below those above.
  constexpr std::uint32_t above() const { return above_; }
  /// Others below a switch of this rank's, and who plays them, in the order of the fold.
  constexpr std::uint32_t children(std::uint32_t node) const {
    return first(node + 1) - first(node) - (is_switch() ? 0 : 1);
  }
  constexpr std::uint32_t child(std::uint32_t node, std::uint32_t i) const {
    return host(tree_->children[first(node) + i + (is_switch() ? 0 : 1)]);
  }
  /// A switch that has nobody to join.
  constexpr bool is_idle() const { return is_switch() && neighbours() == 0; }
  /// All with whom this rank exchanges messages: those below, then the one above.
  constexpr std::uint32_t neighbours() const { return below_ + (above_ == kNoNode ? 0 : 1); }
  constexpr std::uint32_t neighbour(std::uint32_t i) const {
    if (i >= below_) return above_;
    std::uint32_t node = lowest_;
    for (; i >= children(node); node = next(node)) i -= children(node);
    return child(node, i);
  }
  /// The neighbour on the way to another member.
  constexpr std::uint32_t toward(std::uint32_t member) const {
    for (std::uint32_t node = member;;) {
      const std::uint32_t up = parent(node);
      if (up == kNoNode) return above_;
      if (host(up) == rank_) return host(node);
      node = up;
    }
  }
  /// The member whose block goes n-th through the tree.
  constexpr std::uint32_t member(std::uint32_t n) const { return tree_->order[n]; }
  constexpr std::uint32_t position(std::uint32_t member) const { return tree_->position[member]; }

  /// op1 is what others below a switch of this rank's send, folded.
  void arrive(Build& move, Emit& emit, std::uint32_t node, std::uint32_t tag) const {
    if (!is_switch() || !any_ || children(node) < 2) {
      arrive_from(move, emit, children(node), tag, [&](std::uint32_t i) { return child(node, i); });
      return;
    }
    const std::uint32_t list = emit.begin_list(children(node));
    for (std::uint32_t i = 0; i < children(node); ++i) emit.peer(child(node, i));
    move.arrive(PeerMode::kAny, list, tag);
  }
  /// The remote result goes to all below.
  void send_below(Build& move, Emit& emit, std::uint32_t tag) const {
    send_to(move, emit, below_, tag, [&](std::uint32_t i) { return neighbour(i); });
  }
  /// The remote result goes to all neighbours but one, or to all (kNoNode).
  void send_on(Build& move, Emit& emit, std::uint32_t but, std::uint32_t tag) const {
    const std::uint32_t all = neighbours();
    std::uint32_t gap = all;
    for (std::uint32_t i = 0; i < all; ++i) {
      if (neighbour(i) == but) gap = i;
    }
    send_to(move, emit, gap == all ? all : all - 1, tag,
            [&](std::uint32_t i) { return neighbour(i < gap ? i : i + 1); });
  }

  /// Folds what this rank has at `operand` (a switch has nothing) with what comes from below, from one of its switches
  /// to the next; `partial` keeps what is between them. `last` gets the move that has all of it, without a result.
  template <class Last>
  void fold_up(const Call& call, Emit& emit, Place operand, Place partial, std::uint32_t tag, Last last) const {
    bool follows = false;
    for (std::uint32_t node = lowest_;; node = next(node)) {
      const bool is_last = node == top_;
      Build move(call);
      if (!is_switch()) move.take(operand);
      move.count(call.count);
      if (node != kNoNode) arrive(move, emit, node, tag);
      if (follows) move.stream_after(1);
      if (is_last) {
        last(move);
        return;
      }
      emit(move.keep(partial));
      operand = partial;
      follows = true;
    }
  }

 private:
  constexpr std::uint32_t parent(std::uint32_t node) const { return tree_->parent[node]; }
  constexpr std::uint32_t first(std::uint32_t node) const { return tree_->first[node - size_]; }
  /// The switch above, if a member that plays `node` plays it too.
  constexpr std::uint32_t played_above(std::uint32_t node) const {
    const std::uint32_t up = parent(node);
    return tree_->stand_in && up != kNoNode && tree_->children[first(up)] == node ? up : kNoNode;
  }
  /// Who plays a node.
  constexpr std::uint32_t host(std::uint32_t node) const {
    while (tree_->stand_in && node >= size_) node = tree_->children[first(node)];
    return node;
  }

  const CallTree* tree_;
  std::uint32_t rank_;
  std::uint32_t size_;
  std::uint32_t lowest_ = kNoNode;
  std::uint32_t top_ = kNoNode;
  std::uint32_t above_ = kNoNode;
  std::uint32_t below_ = 0;
  bool any_;
};

/// For algorithms of trees; a function that does not commute needs members in the order of ranks.
inline bool admits_tree(const Call& call) {
  if (call.tree == nullptr || pointer_to(call.tree)->members != call.size) return false;
  return !needs_order(call.func) || pointer_to(call.tree)->in_rank_order;
}

}  // namespace unisono::build
