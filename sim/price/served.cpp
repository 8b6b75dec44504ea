#include "sim/price/served.hpp"

#include <numeric>
#include <vector>

#include "core/text.hpp"
#include "core/tree_table.hpp"
#include "sim/network/unit_tree.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint32_t kAddresses = 64;  ///< places in an engine's table
constexpr std::uint32_t kPorts = 8;       ///< of a switch in hardware, one for each neighbour

std::string refusal_of(const Topology& topology, const UnitTree& laid, const CallTree& tree, bool hardware) {
  if (!tree.in_rank_order) return "its ranks do not stand in the order of the network";
  if (tree.members + tree.switches > kAddresses) {
    return formatted("{} ranks and {} switches; an engine's table has {} places", tree.members, tree.switches,
                     kAddresses);
  }
  for (std::uint32_t unit = 0; unit < tree.switches; ++unit) {
    const UnitPlace& place = topology.units[laid.units[unit]];
    if (place.address >= kAddresses) {
      return formatted("{} has address {}; engines reach those below {}", place.name, place.address, kAddresses);
    }
    const std::uint32_t above = laid.parent[unit] == kNoUnit ? 0 : 1;
    const std::uint32_t neighbours = tree.first[unit + 1] - tree.first[unit] + above;
    if (hardware && neighbours > kPorts) {
      return formatted("{} has {} neighbours; switches in hardware have {} ports", place.name, neighbours, kPorts);
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
  found.reason = refusal_of(topology, laid, *found.tree, hardware);
  return found;
}

}  // namespace unisono::sim
