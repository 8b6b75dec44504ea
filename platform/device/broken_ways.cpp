#include "platform/device/broken_ways.hpp"

#include "core/text.hpp"

namespace unisono {

void BrokenWays::note(std::span<const Device::Broken> told, std::span<const std::uint32_t> nodes,
                      std::uint32_t own_node) {
  for (const Device::Broken& one : told) {
    const bool from_here = one.source == own_node;
    const std::uint32_t other = from_here ? one.destination : one.source;
    // What does not come here is told rather than what does not arrive there.
    const auto add = [&](std::map<std::uint32_t, Way>& ways, std::uint32_t name) {
      const auto [found, fresh] = ways.try_emplace(name, Way{one, from_here});
      if (!fresh && found->second.from_here && !from_here) found->second = {one, from_here};
    };
    bool is_rank = false;
    for (std::uint32_t endpoint = 0; endpoint < nodes.size(); ++endpoint) {
      if (nodes[endpoint] != other) continue;
      is_rank = true;
      add(ways_, endpoint);
    }
    if (!is_rank) add(to_switches_, other);
  }
}

std::optional<std::uint32_t> BrokenWays::member_of(const cclo::CallState& call) const {
  if (ways_.empty()) return std::nullopt;
  const bool one_sided = call.call.collective == Collective::kPut || call.call.collective == Collective::kGet;
  const bool pair = one_sided || call.space == cclo::CallState::Space::kPointToPoint;
  if (!pair && call.space == cclo::CallState::Space::kLocal) return std::nullopt;
  const cclo::Communicator& communicator = *call.communicator;
  for (std::uint32_t rank = 0; rank < communicator.size; ++rank) {
    if (rank == communicator.rank || (pair && rank != call.call.root)) continue;
    if (ways_.count(communicator.peers.endpoint(rank)) != 0) return rank;
  }
  return std::nullopt;
}

std::string BrokenWays::words(const cclo::CallState& call, std::uint32_t rank, const std::string& peer) const {
  return words(ways_.at(call.communicator->peers.endpoint(rank)), formatted("rank {}, {},", rank, peer));
}

std::string BrokenWays::words_of(std::uint32_t address) const {
  return words(to_switches_.at(address), formatted("the switch at address {}", address));
}

std::string BrokenWays::words(const Way& way, const std::string& other) {
  const std::string what = way.what.control ? "control messages (credits, grants)" : "data";
  std::string text = formatted("frames were lost: frame {} of the {} ", way.what.missing, what);
  text += way.from_here ? "from this rank to " + other + " has not arrived there"
                        : "from " + other + " to this rank has not come";
  text += way.what.nothing_came ? ", nor has any after it" : formatted(", but frame {} has", way.what.until);
  return text +
         ". The transport of the simulated network repeats none, and passes on nothing behind a gap: run on a network "
         "without loss, reorder, corrupt and down and with room for all frames (policy = pause), or over a transport "
         "that repeats; this job has to be started again";
}

}  // namespace unisono
