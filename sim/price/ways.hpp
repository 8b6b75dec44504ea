// The ways of frames through a network as numbers: what they take where no other frame is under way, and which links
// carry a call's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/model.hpp"
#include "sim/network/topology.hpp"

namespace unisono::sim {

/// The links from an address to another one, in their order; none within one address.
std::vector<std::uint32_t> links_between(const Topology& topology, std::uint32_t from, std::uint32_t to);

/// Times of single frames, in cycles.
class Ways {
 public:
  explicit Ways(const NetworkConfig& config) : config_(config), topology_(make_topology(config)) {}

  const Topology& topology() const { return topology_; }
  /// From a frame's first word at its sender to its last word at its receiver, an engine or a unit. `bytes`: of the
  /// frame, header of the engine included.
  double frame(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) const;
  /// So long a link is busy with a frame.
  double busy(std::uint32_t link, std::uint64_t bytes) const;
  /// The most that a link on the way is.
  double busy(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) const;

 private:
  double rate(std::uint32_t link) const;  ///< bytes a cycle

  NetworkConfig config_;
  Topology topology_;
};

/// The link that a call's data keep busy longest; grants and answers are not counted.
struct Busiest {
  std::string link;              ///< empty: no data go over any
  std::uint64_t bytes = 0;       ///< of payload, the engines' headers included
  std::uint64_t wire_bytes = 0;  ///< with framing
  double cycles = 0;
  std::uint32_t hops = 0;  ///< links on the longest way of a message
};
Busiest busiest_of(const Ways& ways, const ModelledCall& call, const EndpointCosts& engine);

}  // namespace unisono::sim
