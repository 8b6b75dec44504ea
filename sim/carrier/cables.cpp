#include "sim/carrier/cables.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::sim {

void check_routes(const Routes& routes, std::uint32_t nodes) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::kInvalidArgument, "routes: " + why); };
  if (routes.nodes.size() != nodes) {
    refuse(formatted("they are of {} ranks, and the cluster has {} nodes", routes.nodes.size(), nodes));
  }
  if (routes.links != static_cast<int>(Transport::kLinks)) {
    refuse(formatted("they are for {} links of a node; those of a simulated node are {}", routes.links,
                     Transport::kLinks));
  }
  if (routes.virtual_channels > static_cast<int>(Transport::kVirtualChannels)) {
    refuse(formatted("they need {} virtual channels; simulated nodes have {} (--scheme updown needs one)",
                     routes.virtual_channels, Transport::kVirtualChannels));
  }
}

Cables::Cables(const Routes& routes, std::uint32_t nodes, const CableSettings& settings, std::uint64_t seed) {
  check_routes(routes, nodes);
  for (std::uint32_t rank = 0; rank < nodes; ++rank) {
    const RouteNode& node = routes.nodes[rank];
    unsigned cabled = 0;
    for (unsigned link = 0; link < Transport::kLinks; ++link) {
      if (node.peers[link]) cabled |= 1U << link;
    }
    End& end = *ends_.emplace_back(std::make_unique<End>(seed * 1024 + rank + 1, rank, node.image, cabled));
    for (unsigned link = 0; link < Transport::kLinks; ++link) {
      end.wires.push_back(node.peers[link] ? std::make_unique<Wire>(settings) : nullptr);
    }
  }
  for (std::uint32_t rank = 0; rank < nodes; ++rank) {
    for (unsigned link = 0; link < Transport::kLinks; ++link) {
      const auto& peer = routes.nodes[rank].peers[link];
      ends_[rank]->out.push_back(ends_[rank]->wires[link].get());
      ends_[rank]->in.push_back(peer ? ends_[peer->rank]->wires[peer->link].get() : nullptr);
    }
  }
}

Cables::~Cables() = default;

Pushed Cables::push(std::uint32_t node, const SentWord& word) {
  End& end = *ends_[node];
  if (!end.transport.can_push()) return Pushed::kBusy;
  if (end.left == 0) {
    const bool control = word.port != 0;
    if (word.frame_bytes > (control ? Transport::kMostControl : Transport::kMostData)) return Pushed::kTooLong;
    if (word.destination >= ends_.size() || word.destination == node) return Pushed::kNoDestination;
    if (word.frame_bytes == 0) return Pushed::kWrongLength;
    end.destination = word.destination;
    end.bytes = word.frame_bytes;
    end.control = control;
  }
  const std::uint32_t left = end.left == 0 ? end.bytes : end.left;
  const bool ends = left <= kWordBytes;
  if (word.last != ends || word.bytes != (ends ? left : kWordBytes)) return Pushed::kWrongLength;
  if (end.left == 0) ++under_way_;
  end.left = left - word.bytes;
  end.transport.push(word, end.destination, end.bytes, end.control);
  return Pushed::kTaken;
}

void Cables::pop(std::uint32_t node) {
  if (ends_[node]->transport.front()->last) --under_way_;
  ends_[node]->transport.pop();
}

void Cables::tick() {
  for (const auto& end : ends_) end->transport.tick(now_, end->out, end->in);
  ++now_;
}

std::uint64_t Cables::next_event() const {
  std::uint64_t next = kNever;
  for (const auto& end : ends_) {
    if (!end->transport.rests() || end->transport.front() != nullptr) return 0;
    for (const auto& wire : end->wires) {
      if (wire) next = std::min(next, wire->next());
    }
  }
  return next == kNever ? kNever : next - std::min(next, now_);
}

std::vector<std::string> Cables::complaints() const {
  std::vector<std::string> all;
  for (std::size_t rank = 0; rank < ends_.size(); ++rank) {
    const Transport& transport = ends_[rank]->transport;
    if (transport.strays() != 0) {
      all.push_back(formatted("rank {}: {} packets were for nobody that its tables know", rank, transport.strays()));
    }
    if (transport.dropped() != 0) {
      all.push_back(
          formatted("rank {}: {} frames were dropped, whose packets did not fit together", rank, transport.dropped()));
    }
  }
  return all;
}

double Cables::evaluated() const {
  std::uint64_t cycles = 0;
  for (const auto& end : ends_) cycles += end->transport.evaluated();
  return now_ == 0 ? 1 : static_cast<double>(cycles) / static_cast<double>(now_ * ends_.size());
}

}  // namespace unisono::sim
