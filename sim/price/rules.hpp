// From the prices of a simulated network to the rules by which its jobs choose algorithms: what is quickest by closed
// forms, by collective, ranks and bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/tuning.hpp"
#include "sim/price/parameters.hpp"
#include "sim/price/ways.hpp"

namespace unisono::sim {

/// A job in a network.
struct PricedJob {
  const Ways& ways;
  const Parameters& parameters;
  const EndpointCosts& engine;
  std::uint32_t ranks = 2;
  bool hardware = false;  ///< its switches are in RTL
};

/// Rules for its communicators: for that of all ranks and for powers of two below, each by its own prices; for those
/// between, by prices of one in the middle. Their ranks are taken to be the network's first ones. Of a class, rules
/// that name the algorithm of switches come first, for lengths where these are the quickest; then those of what is
/// quickest among the ranks, for all others, and for communicators without switches. Nothing is said of v-collectives
/// and of communicators with groups.
///
/// Equal arguments give equal rules: where a call has many moves, fewer lengths are priced, and nothing looks at a
/// clock. `only`: of this collective, and of all ranks, which have the same rules then.
std::vector<Rule> rules_by_price(const PricedJob& job, std::optional<Collective> only = {});

}  // namespace unisono::sim
