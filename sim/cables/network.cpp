#include "sim/cables/network.hpp"

#include <algorithm>
#include <stdexcept>

namespace unisono::sim {

CableNetwork::CableNetwork(int nodes, const CableSettings& settings) : settings_(settings) {
  for (int rank = 0; rank < nodes; ++rank) {
    nodes_.push_back(std::make_unique<CableNode>(settings.seed * 1000 + static_cast<std::uint32_t>(rank)));
  }
}

void CableNetwork::load(const Routes& routes) {
  if (routes.links != CableNode::kLinks) {
    throw std::runtime_error("routes of " + std::to_string(routes.links) + " links; the simulated nodes have " +
                             std::to_string(CableNode::kLinks));
  }
  if (routes.nodes.size() > nodes_.size()) {
    throw std::runtime_error("routes of " + std::to_string(routes.nodes.size()) + " ranks; there are " +
                             std::to_string(nodes_.size()) + " simulated nodes");
  }
  routes_ = routes;
  size_ = static_cast<int>(routes.nodes.size());
  crossed_ = 0;
  links_.clear();
  links_.resize(size_);
  for (int rank = 0; rank < size_; ++rank) {
    links_[rank].resize(CableNode::kLinks);
    for (int link = 0; link < CableNode::kLinks; ++link) {
      const auto& peer = routes.nodes[rank].peers[link];
      if (!peer) continue;
      Link& made = links_[rank][link];
      made.cable = std::make_unique<Cable>(settings_.latency, settings_.bytes_per_cycle);
      made.peer = *peer;
      made.inside.resize(CableNode::kChannels);
    }
    nodes_[rank]->load(routes.nodes[rank].image);
  }
  for (int i = 0; i < 20000; ++i) {
    cycle();
    if (i > settings_.latency + 1000 &&
        std::all_of(nodes_.begin(), nodes_.begin() + size_, [](const auto& node) { return node->running(); })) {
      return;
    }
  }
  for (int rank = 0; rank < size_; ++rank) {
    if (!nodes_[rank]->running()) {
      throw std::runtime_error("rank " + std::to_string(rank) + " refuses its image: reason " +
                               std::to_string(nodes_[rank]->image_error()) + " of unisono_smi_pkg::image_e");
    }
  }
}

void CableNetwork::cycle() {
  for (auto& of_node : links_) {
    for (Link& link : of_node) {
      if (link.cable) link.cable->begin_cycle(now_);
    }
  }
  for (int rank = 0; rank < size_; ++rank) {
    Cable* out[CableNode::kLinks];
    Cable* in[CableNode::kLinks];
    for (int link = 0; link < CableNode::kLinks; ++link) {
      const Link& here = links_[rank][link];
      out[link] = here.cable.get();
      in[link] = here.cable ? links_[here.peer.rank][here.peer.link].cable.get() : nullptr;
    }
    nodes_[rank]->cycle(now_, out, in);
  }
  for (int rank = 0; rank < size_; ++rank) {
    for (int link = 0; link < CableNode::kLinks; ++link) {
      Link& here = links_[rank][link];
      if (!here.cable) continue;
      if (const CablePacket* packet = nodes_[rank]->sent(link)) {
        here.inside[packet->channel].push(*packet);
        ++crossed_;
      }
      const std::uint32_t freed = nodes_[here.peer.rank]->freed(here.peer.link);
      for (int channel = 0; channel < CableNode::kChannels; ++channel) {
        if (freed >> channel & 1 && !here.inside[channel].empty()) here.inside[channel].pop();
      }
    }
  }
  ++now_;
}

bool CableNetwork::run(const std::function<bool()>& done, std::uint64_t quiet) {
  std::uint64_t seen = crossed_, since = now_;
  while (!done()) {
    cycle();
    if (crossed_ != seen) {
      seen = crossed_;
      since = now_;
    }
    if (now_ - since > quiet) return done();
  }
  return true;
}

bool CableNetwork::next(const Place& here, Place& following) const {
  const Link& link = links_[here.rank][here.link];
  if (!link.cable) return false;
  const Ring<CablePacket>& inside = link.inside[here.channel];
  // Two places are kept back for packets that are decided on already.
  if (inside.size() + 2 < CableNode::kLinkDepth) return false;
  const int target = static_cast<int>(inside.front().words[7] >> 8 & 0xff);
  const int control = here.channel / CableNode::kVirtualChannels;
  int channel = here.channel % CableNode::kVirtualChannels;
  const int rank = link.peer.rank;
  int at = link.peer.link;
  if (target == rank) return false;
  for (int i = 0; i < CableNode::kLinks; ++i) {
    const Step& step = routes_.nodes[rank].cks[at][channel][target];
    channel = step.channel;
    if (step.way == Step::Way::kLink) {
      following = {rank, at, control * CableNode::kVirtualChannels + channel};
      return true;
    }
    if (step.way != Step::Way::kCks) return false;
    at = step.other;
  }
  return false;
}

std::string CableNetwork::circle() const {
  for (int rank = 0; rank < size_; ++rank) {
    for (int link = 0; link < CableNode::kLinks; ++link) {
      for (int channel = 0; channel < CableNode::kChannels; ++channel) {
        const Place first{rank, link, channel};
        std::string text = std::to_string(rank);
        Place here = first, following{};
        for (int hops = 0; hops <= size_ * CableNode::kLinks && next(here, following); ++hops) {
          text += " -> " + std::to_string(following.rank);
          if (following.rank == first.rank && following.link == first.link && following.channel == first.channel)
            return text;
          here = following;
        }
      }
    }
  }
  return "";
}

}  // namespace unisono::sim
