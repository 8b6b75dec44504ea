// How the calls of a communicator are carried: what its first rank has arranged with switches, and tells the others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tree.hpp"
#include "switch/control.hpp"

namespace unisono::slots {

/// A vector is shared by so many pools at most.
inline constexpr std::size_t kMostPools = 8;

/// A pool as its members know it.
struct PlannedPool {
  /// A switch that ranks hang below.
  struct Leaf {
    std::uint32_t address = 0;  ///< position in the list of addresses, which is the same on all ranks
    std::string name;
    std::uint16_t port = 0;  ///< of UDP
    std::uint64_t generation = 0;
    std::string group;  ///< see PoolAnswer
  };
  /// Where a rank hangs.
  struct Place {
    std::uint32_t leaf = 0;
    std::uint32_t position = 0;  ///< among the children of that switch
    std::uint32_t order = 0;     ///< the rank's number in the order of the tree
  };
  PoolId id{};
  Digest secret{};
  std::uint32_t slots = 0;
  std::uint16_t payload_bytes = 0;
  std::vector<Leaf> leaves;
  std::vector<Place> places;  ///< by rank
  std::string tree;           ///< brackets, as text_of(CallTree) writes them
};

struct Plan {
  std::string refusal;  ///< why nothing is carried; empty: it is
  PoolId job{};
  std::uint64_t capability = 0;  ///< of the switches, all together
  std::uint64_t up_to_bytes = 0;
  bool stable = false;  ///< see AggregationSettings
  std::vector<PlannedPool> pools;
};

join::Blob packed(const Plan& plan);
/// Nothing for other bytes, or of a communicator of another size.
std::optional<Plan> plan_in(std::span<const std::byte> bytes, std::uint32_t ranks);

}  // namespace unisono::slots
