#include "sim/network/engine_trees.hpp"

#include "core/text.hpp"

namespace unisono::sim {

std::string why_not_by_engines(const Topology& topology, const UnitTree& laid, const CallTree& tree) {
  if (!tree.in_rank_order) {
    return "its ranks do not stand in the order of the network: below each switch there must be ranks that follow one "
           "another; engines know trees of that kind only";
  }
  if (tree.members + tree.switches > kEngineAddresses) {
    return formatted("{} ranks and {} switches; an engine's table has {} places", tree.members, tree.switches,
                     kEngineAddresses);
  }
  for (const std::uint32_t unit : laid.units) {
    const UnitPlace& place = topology.units[unit];
    if (place.address >= kEngineAddresses) {
      return formatted("{} has address {}; engines reach those below {}", place.name, place.address, kEngineAddresses);
    }
  }
  return "";
}

}  // namespace unisono::sim
