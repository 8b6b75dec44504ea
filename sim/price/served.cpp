#include "sim/price/served.hpp"

#include <numeric>
#include <vector>

#include "core/text.hpp"
#include "core/tree_table.hpp"
#include "sim/network/engine_trees.hpp"

namespace unisono::sim {
namespace {

std::string why_not(const Topology& topology, const UnitTree& laid, const CallTree& tree, bool hardware) {
  std::string reason = why_not_by_engines(topology, laid, tree);
  if (!reason.empty() || !hardware) return reason;
  for (std::uint32_t unit = 0; unit < tree.switches; ++unit) {
    const std::uint32_t above = laid.parent[unit] == kNoUnit ? 0 : 1;
    const std::uint32_t neighbours = tree.first[unit + 1] - tree.first[unit] + above;
    if (neighbours > kHardwareSwitchPorts) {
      return formatted("{} has {} neighbours; switches in hardware have {} ports",
                       topology.units[laid.units[unit]].name, neighbours, kHardwareSwitchPorts);
    }
  }
  return "";
}

}  // namespace

Served served(const Topology& topology, std::uint32_t ranks, bool hardware) {
  std::vector<std::uint32_t> nodes(ranks);
  std::iota(nodes.begin(), nodes.end(), 0U);
  const UnitTree laid = lay_tree(topology, nodes);
  if (!laid.reason.empty()) return {nullptr, "", laid.reason};
  Served found{parse_tree(laid.text, false), laid.text, ""};
  found.reason = why_not(topology, laid, *found.tree, hardware);
  return found;
}

}  // namespace unisono::sim
