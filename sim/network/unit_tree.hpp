// Trees of units, laid over a network for given nodes: each value is folded as near to them as there is a unit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/network/topology.hpp"

namespace unisono::sim {

/// Units count here by their places in `units`.
struct UnitTree {
  std::string reason;                 ///< why there is no tree; empty: there is one, and all that follows is of it
  std::vector<std::uint32_t> units;   ///< those used, by their numbers in the network; the top first, as brackets open
  std::vector<std::uint32_t> parent;  ///< of each of them; kNoUnit of the top
  std::vector<std::uint32_t> hangs;   ///< of each given node: the unit that it hangs at
  std::string text;                   ///< "((0 1) (2 3))", as parse_tree of core/tree_table.hpp reads it
};

/// The tree for these nodes; ranks are their places in the list. The same for the same network and list.
///
/// The top is the unit with the least sum of links to the nodes, the lowest one of several. A node hangs at the first
/// unit on its way to the top, a unit at the next one on its own; where the network has several ways, that by the
/// lowest switch with a unit counts. A unit with one child is left out, and the child hangs higher. Children are in the
/// order of the lowest rank below them. With more than kMostTreeLevels units on a way there is no tree.
UnitTree lay_tree(const Topology& topology, std::span<const std::uint32_t> nodes);

}  // namespace unisono::sim
