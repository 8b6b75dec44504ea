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
  std::int8_t dimension = -1;  ///< of a ring or torus
  bool dateline = false;       ///< from the last place of a dimension to the first, or back
};

/// Built once, from a configuration. Every pair of nodes is connected.
struct Topology {
  std::uint32_t nodes = 0, switches = 0;
  std::vector<LinkPlan> links;
  std::vector<std::uint32_t> uplink, downlink;  ///< of each node
  /// Channels a link has at its far end, each with a buffer of its own (with pause only; see `next_channel`).
  std::uint32_t channels = 1;

  /// Links by which a switch may pass on what goes to a node: [switch * nodes + destination]. With several, a hash of
  /// source, destination and port chooses, so that what belongs together takes one way.
  std::vector<std::vector<std::uint32_t>> ways;

  std::uint32_t way(std::uint32_t at, std::uint32_t source, std::uint32_t destination, std::uint32_t port) const;

  /// The channel by which a frame leaves, given the link and channel by which it came. In a ring and in each dimension
  /// of a torus frames begin on channel 0 and change to channel 1 where they pass the dateline. No shortest way passes
  /// it twice, and dimensions are travelled in order, so the buffers that wait for one another form no circle (Dally
  /// and Seitz, IEEE Trans. Computers 1987).
  std::uint8_t next_channel(const LinkPlan& in, const LinkPlan& out, std::uint8_t channel) const {
    if (channels == 1 || out.dimension < 0) return 0;
    if (out.dateline) return 1;
    return in.dimension == out.dimension ? channel : std::uint8_t{0};
  }
};

/// Throws Error(kInvalidArgument) that names the key which does not fit.
Topology make_topology(const NetworkConfig& config);

}  // namespace unisono::sim
