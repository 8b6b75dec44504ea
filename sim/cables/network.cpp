#include "sim/cables/network.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

namespace unisono::sim {

/// Threads that run the nodes of their share when told to, beside the caller, who waits for them.
class CableNetwork::Team {
 public:
  Team(CableNetwork& network, int threads) : network_(network), threads_(threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  }
  ~Team() {
    ends_ = true;
    turn_.fetch_add(1);
    turn_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  void run(int cycles) {
    cycles_ = cycles;
    left_ = threads_ - 1;
    turn_.fetch_add(1);
    turn_.notify_all();
    network_.run_nodes(0, threads_, cycles);
    // The others are about as far.
    for (int spin = 0; left_.load() != 0; ++spin) {
      if (spin > 2000) std::this_thread::yield();
    }
  }

 private:
  void work(int share) {
    for (int turn = 0;;) {
      for (int spin = 0; turn_.load() == turn && spin < 2000; ++spin) {
      }
      turn_.wait(turn);
      turn = turn_.load();
      if (ends_) return;
      network_.run_nodes(share, threads_, cycles_);
      left_.fetch_sub(1);
    }
  }

  CableNetwork& network_;
  int threads_;
  int cycles_ = 0;
  std::atomic<int> turn_ = 0;
  std::atomic<int> left_ = 0;
  std::atomic<bool> ends_ = false;
  std::vector<std::thread> workers_;
};

CableNetwork::~CableNetwork() = default;

CableNetwork::CableNetwork(int nodes, const CableSettings& settings) : settings_(settings) {
  for (int rank = 0; rank < nodes; ++rank) {
    nodes_.push_back(std::make_unique<CableNode>(settings.seed * 1000 + static_cast<std::uint32_t>(rank)));
    nodes_.back()->skip_quiet(settings.skip_quiet);
  }
  if (settings.threads > 1) team_ = std::make_unique<Team>(*this, settings.threads);
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

void CableNetwork::run_nodes(int first, int step, int cycles) {
  for (int rank = first; rank < size_; rank += step) {
    Cable* out[CableNode::kLinks];
    Cable* in[CableNode::kLinks];
    for (int link = 0; link < CableNode::kLinks; ++link) {
      const Link& here = links_[rank][link];
      out[link] = here.cable.get();
      in[link] = here.cable ? links_[here.peer.rank][here.peer.link].cable.get() : nullptr;
    }
    // One node after the other, so that its state stays in the cache.
    for (int i = 0; i < cycles; ++i) {
      nodes_[rank]->cycle(now_ + static_cast<std::uint64_t>(i), out, in);
      for (int link = 0; link < CableNode::kLinks; ++link) {
        Link& here = links_[rank][link];
        if (!here.cable) continue;
        if (const CablePacket* packet = nodes_[rank]->sent(link)) here.sent.push_back(*packet);
        const std::uint32_t freed = nodes_[rank]->freed(link);
        if (freed != 0) links_[here.peer.rank][here.peer.link].freed.push_back(freed);
      }
    }
  }
}

void CableNetwork::advance(int cycles) {
  while (cycles > 0) {
    const int batch = std::min(cycles, settings_.latency);
    if (team_ != nullptr) {
      team_->run(batch);
    } else {
      run_nodes(0, 1, batch);
    }
    for (auto& of_node : links_) {
      for (Link& link : of_node) {
        if (!link.cable) continue;
        link.cable->exchange();
        crossed_ += link.sent.size();
        for (const CablePacket& packet : link.sent) link.inside[packet.channel].push(packet);
        for (const std::uint32_t freed : link.freed) {
          for (int channel = 0; channel < CableNode::kChannels; ++channel) {
            if (freed >> channel & 1 && !link.inside[channel].empty()) link.inside[channel].pop();
          }
        }
        link.sent.clear();
        link.freed.clear();
      }
    }
    now_ += static_cast<std::uint64_t>(batch);
    cycles -= batch;
  }
}

std::uint64_t CableNetwork::skipped() const {
  std::uint64_t sum = 0;
  for (const auto& node : nodes_) sum += node->skipped();
  return sum;
}

bool CableNetwork::run(const std::function<bool()>& done, std::uint64_t quiet) {
  std::uint64_t seen = crossed_, since = now_;
  while (!done()) {
    advance(settings_.latency);
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
