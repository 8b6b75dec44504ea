#include "sim/price/ways.hpp"

#include <algorithm>
#include <cmath>

#include "sim/model/peers.hpp"
#include "sim/network/frame.hpp"
#include "sim/network/rate.hpp"

namespace unisono::sim {

std::vector<std::uint32_t> links_between(const Topology& topology, std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> found;
  if (from == to) return found;
  std::uint32_t at = topology.switch_of[from];
  if (from < topology.nodes) {
    found.push_back(topology.uplink[from]);
    const Place& next = topology.links[found.back()].to;
    if (next.is_node) return found;
    at = next.index;
  }
  const auto in_switch = [&] { return to >= topology.nodes && topology.switch_of[to] == at; };
  while (!in_switch()) {
    found.push_back(topology.way(at, from, to, kModelDataPort));
    const Place& next = topology.links[found.back()].to;
    if (next.is_node) break;
    at = next.index;
  }
  return found;
}

double Ways::rate(std::uint32_t link) const {
  if (topology_.links[link].local) return kWordBytes;
  const Rate exact = Rate::of(topology_.links[link].config.mbps, config_.clock_khz);
  return static_cast<double>(exact.bytes) / static_cast<double>(exact.cycles);
}

double Ways::busy(std::uint32_t link, std::uint64_t bytes) const {
  const LinkPlan& plan = topology_.links[link];
  if (plan.local) return std::ceil(static_cast<double>(bytes) / kWordBytes);
  const std::uint64_t wire =
      std::max<std::uint64_t>(plan.config.min_wire_bytes, plan.config.header_bytes + bytes + plan.config.trailer_bytes);
  return static_cast<double>(wire) / rate(link);
}

double Ways::busy(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) const {
  double most = 0;
  for (const std::uint32_t link : links_between(topology_, from, to)) most = std::max(most, busy(link, bytes));
  return most;
}

double Ways::frame(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) const {
  // When the first word and the last one can leave: a frame is cut through, but a link that is faster than the one
  // before it gets it whole.
  const auto word = static_cast<double>(std::min<std::uint64_t>(bytes, kWordBytes));
  const double more = static_cast<double>(bytes) - word;
  // An engine gives its link a word per cycle, and takes one; a unit has the whole frame.
  const bool whole = from >= topology_.nodes;
  const double words = std::max(1.0, std::ceil(static_cast<double>(bytes) / kWordBytes));
  double first = 0, last = whole ? 0 : words - 1;
  double before = whole ? 0 : kWordBytes;
  for (const std::uint32_t link : links_between(topology_, from, to)) {
    const LinkPlan& plan = topology_.links[link];
    const double here = rate(link), begin = here > before && !plan.local ? last : first;
    const double lead = (plan.config.header_bytes + word) / here;
    last = std::ceil(std::max(begin + lead + more / here, last + word / here)) + plan.config.propagation;
    first = std::ceil(begin + lead) + plan.config.propagation;
    before = here;
    // What comes from a node's own card is in the router already.
    if (!plan.to.is_node && !plan.local) {
      first += config_.switch_latency;
      last += config_.switch_latency;
    }
  }
  return to < topology_.nodes ? std::max(last, first + words - 1) : last;
}

Busiest busiest_of(const Ways& ways, const ModelledCall& call, const EndpointCosts& engine) {
  struct Load {
    std::uint64_t bytes = 0, frames = 0;
    double cycles = 0;
  };
  const std::vector<LinkPlan>& links = ways.topology().links;
  std::vector<Load> loads(links.size());
  Busiest found;
  for (std::uint32_t rank = 0; rank < call.programs.size(); ++rank) {
    const Program& program = call.programs[rank];
    for (const Move& move : program.moves) {
      if (!sends(move)) continue;
      const std::uint64_t all = move.count * bytes_of(move.dtype);
      for (const std::uint32_t peer : ranks_of(program, move.remote.mode, move.remote.peer)) {
        const std::vector<std::uint32_t> way =
            links_between(ways.topology(), call.addresses[rank], call.addresses[peer]);
        found.hops = std::max(found.hops, static_cast<std::uint32_t>(way.size()));
        for (const std::uint32_t link : way) {
          for (std::uint64_t done = 0; done == 0 || done < all; done += engine.segment) {
            const std::uint64_t bytes = kWordBytes + std::min(engine.segment, all - done);
            loads[link].bytes += bytes;
            loads[link].cycles += ways.busy(link, bytes);
            ++loads[link].frames;
          }
        }
      }
    }
  }
  for (std::uint32_t link = 0; link < links.size(); ++link) {
    if (loads[link].cycles <= found.cycles) continue;
    const LinkConfig& plan = links[link].config;
    found.link = links[link].name;
    found.bytes = loads[link].bytes;
    found.wire_bytes = loads[link].bytes;
    if (!links[link].local) found.wire_bytes += loads[link].frames * (plan.header_bytes + plan.trailer_bytes);
    found.cycles = loads[link].cycles;
  }
  return found;
}

}  // namespace unisono::sim
