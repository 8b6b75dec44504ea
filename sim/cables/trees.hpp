// Trees along cables, for collectives: who is whose parent.
#pragma once

#include <vector>

#include "sim/cables/routes.hpp"

namespace unisono::sim {

/// The place of a rank in a tree.
struct TreePlace {
  int parent = -1;            ///< -1 at the root, and of ranks outside
  std::vector<int> children;  ///< in the order in which a reduction combines them
};

/// The tree of fewest hops from `root` to the other members, along cables between members; of several parents that are
/// as near the one with the fewest children, then the lowest rank. Members that no cable joins to the others hang from
/// the nearest place that is free, by their routes. By rank. Throws std::invalid_argument if `root` is no member.
std::vector<TreePlace> tree_of(const Routes& routes, int root, const std::vector<int>& members);

}  // namespace unisono::sim
