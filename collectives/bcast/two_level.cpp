// Two-level broadcast: between the leaders of groups, then within the groups.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", IPDPS 2000.
// Cost, with groups of g: ceil(log2 P/g) (alpha + n beta) + alpha + (g-1) n beta; segments stream.
//
// The root leads its group, the first rank every other one. The leaders are a binomial tree over the
// groups. A leader stores what arrives and passes it to the leaders below it and to its group, in one
// move: nothing to order.
#include "collectives/bcast/bcast.hpp"
#include "collectives/levels.hpp"
#include "collectives/peers.hpp"
#include "collectives/subtree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t bcast_two_level_steps(const Call& call) { return call.size == 1 ? 0 : 1; }

void bcast_two_level_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const Levels levels(call);
  const std::uint32_t groups = levels.groups();
  const std::uint32_t group = levels.group_of(call.rank);
  const std::uint32_t first = levels.group_of(call.root);
  const auto leader = [&](std::uint32_t of) { return of == first ? call.root : levels.first(of); };
  Build move(call);
  move.count(call.count);
  if (call.rank != leader(group)) {
    emit(move.arrive(leader(group), 0).keep(dst()));
    return;
  }
  const Subtree node = Subtree::at(groups, first, minus(group, first, groups));
  if (node.is_root()) {
    move.take(dst());
  } else {
    move.arrive(leader(node.parent().rank()), 0).keep(dst());
  }
  const std::uint32_t children = node.children();
  send_to(move, emit, children + levels.members(group) - 1, 0, [&](std::uint32_t i) {
    if (i < children) return leader(node.child(children - 1 - i).rank());
    return levels.other(group, call.rank, i - children);
  });
  emit(move);
}

}  // namespace unisono::collectives
