// Two-level reduction: within groups, then between their leaders; in rank order for any root.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000.
// Cost, with groups of g: alpha + (g-1) n beta + (g-1) n gamma within, ceil(log2 P/g) (alpha + n beta + n gamma)
// between; segments stream.
//
// As in binomial reduction two trees meet in the root, here over groups: one over the groups from the
// root's upwards, one over those downwards. A group above is led by its first rank, which folds the
// ranks behind it and then the intervals of its children; a group below by its last rank, which does the
// same from the left. So each leader has one move and needs no scratch. The root leads its group: the
// ranks above it and the groups above come from the right, those below from the left (sides.hpp).
#include "collectives/levels.hpp"
#include "collectives/reduce/reduce.hpp"
#include "collectives/reduce/sides.hpp"
#include "collectives/subtree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t reduce_two_level_steps(const Call& /*call*/) { return 1; }

void reduce_two_level_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const Levels levels(call);
  const std::uint32_t root = call.root;
  const std::uint32_t group = levels.group_of(call.rank);
  const std::uint32_t middle = levels.group_of(root);
  const std::uint32_t above = levels.groups() - middle;  // groups of the upper tree, the root's included
  const std::uint32_t below = middle + 1;                // and of the lower one
  const auto leader = [&](std::uint32_t of) {
    if (of == middle) return root;
    return of > middle ? levels.first(of) : levels.end(of) - 1;
  };
  if (call.rank == root) {
    const Subtree upper = Subtree::at(above, 0, 0);
    const Subtree lower = Subtree::at(below, 0, 0);
    const std::uint32_t right = levels.end(middle) - 1 - root;  // ranks of the group on either side
    const std::uint32_t left = root - levels.first(middle);
    fold_at_root(
        call, emit, right + upper.children(),
        [&](std::uint32_t i) { return i < right ? root + 1 + i : leader(middle + upper.child(i - right).relative); },
        left + lower.children(),
        [&](std::uint32_t i) { return i < left ? root - 1 - i : leader(middle - lower.child(i - left).relative); });
    return;
  }
  Build move(call);
  move.take(reduce_input(call)).count(call.count);
  if (call.rank != leader(group)) {
    emit(move.send(leader(group), 0));
    return;
  }
  const bool upper = group > middle;
  const Subtree node = upper ? Subtree::at(above, 0, group - middle) : Subtree::at(below, 0, middle - group);
  const auto group_at = [&](const Subtree& of) { return upper ? middle + of.relative : middle - of.relative; };
  const std::uint32_t members = levels.members(group) - 1;
  arrive_from(move, emit, members + node.children(), 0, [&](std::uint32_t i) {
    if (i >= members) return leader(group_at(node.child(i - members)));
    return upper ? call.rank + 1 + i : call.rank - 1 - i;
  });
  move.arrival_first(!upper && members + node.children() != 0).send(leader(group_at(node.parent())), 0);
  emit(move);
}

}  // namespace unisono::collectives
