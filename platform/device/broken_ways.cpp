#include "platform/device/broken_ways.hpp"

#include "core/text.hpp"

namespace unisono {

void BrokenWays::note(std::span<const Device::Broken> told, std::span<const std::uint32_t> nodes,
                      std::uint32_t own_node) {
  for (const Device::Broken& one : told) {
    const bool from_here = one.source == own_node;
    const std::uint32_t other = from_here ? one.destination : one.source;
    for (std::uint32_t endpoint = 0; endpoint < nodes.size(); ++endpoint) {
      // What does not come here is told rather than what does not arrive there.
      if (nodes[endpoint] != other) continue;
      const auto [found, fresh] = ways_.try_emplace(endpoint, Way{one, from_here});
      if (!fresh && found->second.from_here && !from_here) found->second = {one, from_here};
    }
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
  const Way& way = ways_.at(call.communicator->peers.endpoint(rank));
  const std::string other = formatted("rank {}, {},", rank, peer);
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
