// The links of a network and the ways through it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/network/config.hpp"

namespace unisono::sim {

/// One end of a link: a node, or a switch (a router, in a direct network).
struct Place {
  bool is_node = false;
  std::uint32_t index = 0;
};

/// One direction of a cable.
struct LinkPlan {
  std::string name;  ///< "node0>switch0"
  Place from, to;
  LinkConfig config;
  /// Between a node and its own router: a word per cycle, no overhead, and room is awaited even where the policy of the
  /// network is to drop.
  bool local = false;
  bool up = false;             ///< of a leaf-spine: from a leaf to a spine
  std::int8_t dimension = -1;  ///< of a ring or torus
  bool dateline = false;       ///< from the last place of a dimension to the first, or back
};

/// Where a unit stands (unit.hpp).
struct UnitPlace {
  std::uint32_t address = 0;  ///< what frames for it have as their destination
  std::string name;           ///< of its switch or node: "leaf0", "node9"
  Place at;
};

inline constexpr std::uint32_t kNoUnit = ~std::uint32_t{0};

/// Built once, from a configuration. Every pair of addresses is connected: those of nodes, from 0 on, then those of the
/// units in switches.
struct Topology {
  std::uint32_t nodes = 0, switches = 0;
  std::vector<std::string> switch_names;
  std::vector<LinkPlan> links;
  std::vector<std::uint32_t> uplink, downlink;  ///< of each node
  /// Channels a link has at its far end, each with a buffer of its own (with pause only; see `next_channel`).
  std::uint32_t channels = 1;

  /// Units: those in switches, in the order of switches, then those at nodes, in theirs.
  std::vector<UnitPlace> units;
  std::vector<std::uint32_t> unit_in;    ///< by switch: the unit in it, or kNoUnit
  std::vector<std::uint32_t> switch_of;  ///< by address: the switch that it is at, or in
  /// Switches to which a switch has links, ascending.
  std::vector<std::vector<std::uint32_t>> neighbours;

  std::uint32_t addresses() const { return static_cast<std::uint32_t>(switch_of.size()); }

  /// Links by which a switch may pass on what goes to another one: [switch * switches + other]. With several, a hash of
  /// source, destination and port chooses, so that what belongs together takes one way.
  std::vector<std::vector<std::uint32_t>> ways;

  /// The link by which a switch passes on a frame that is not for the unit in it.
  std::uint32_t way(std::uint32_t at, std::uint32_t source, std::uint32_t destination, std::uint32_t port) const;

  /// The channel by which a frame leaves, given the link and channel by which it came. In a ring and in each dimension
  /// of a torus frames begin on channel 0 and change to channel 1 where they pass the dateline. No shortest way passes
  /// it twice, and dimensions are travelled in order, so the buffers that wait for one another form no circle (Dally
  /// and Seitz, IEEE Trans. Computers 1987). In a leaf-spine a frame that has come down and goes up again, from the
  /// unit of a spine to that of another, goes up on channel 1, which nothing but units empties.
  std::uint8_t next_channel(const LinkPlan& in, const LinkPlan& out, std::uint8_t channel) const {
    if (channels == 1) return 0;
    if (out.dimension < 0) return out.up && !in.from.is_node ? 1 : 0;
    if (out.dateline) return 1;
    return in.dimension == out.dimension ? channel : std::uint8_t{0};
  }
  /// The channel by which a frame of the unit in a switch leaves it.
  std::uint8_t first_channel(const LinkPlan& out) const { return channels > 1 && out.dateline ? 1 : 0; }
};

/// Nodes of a network that are units and not engines; they are its last ones.
std::uint32_t units_at_nodes(const NetworkConfig& config);
/// Nodes of a network with so many engines: these, and the units at nodes that the configuration names.
std::uint32_t nodes_with_units(const NetworkConfig& config, std::uint32_t engines);

/// Throws Error(kInvalidArgument) that names the key which does not fit.
Topology make_topology(const NetworkConfig& config);

}  // namespace unisono::sim
