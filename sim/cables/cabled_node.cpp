#include "sim/cables/cabled_node.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "sim/cables/trees.hpp"

namespace unisono::sim {

namespace {

/// A node in which nothing has moved for so long is not evaluated: all its counters have come to their ends.
constexpr std::uint64_t kQuiet = 256;

}  // namespace

CabledNode::CabledNode(const kernels::SmiNodeSettings& settings)
    : rank_(settings.rank),
      packet_bytes_(settings.packet_bytes),
      latency_(settings.latency),
      bytes_per_cycle_(settings.bytes_per_cycle),
      shared_(settings.memory, settings.ranks, settings.ports, settings.latency),
      routes_(read_routes(settings.routes)) {
  ranks_ = settings.ranks;
  clock_khz_ = settings.clock_khz;
  push.resize(settings.ports);
  pop.resize(settings.ports);
  unit.resize(settings.ports);
  if (routes_.links != kLinks) {
    throw std::runtime_error("routes of " + std::to_string(routes_.links) + " links; the simulated nodes have " +
                             std::to_string(kLinks));
  }
  if (routes_.nodes.size() != ranks_) {
    throw std::runtime_error("routes of " + std::to_string(routes_.nodes.size()) + " ranks; the job has " +
                             std::to_string(ranks_));
  }
  const RouteNode& own = own_routes();
  for (std::size_t link = 0; link < own.peers.size() && link < kLinks; ++link) peers_[link] = own.peers[link];
}

kernels::PortTree CabledNode::tree(std::uint32_t root, const std::vector<std::uint32_t>& members) const {
  const TreePlace place = tree_of(routes_, static_cast<int>(root), {members.begin(), members.end()})[rank_];
  kernels::PortTree found;
  if (place.parent >= 0) found.parent = static_cast<std::uint32_t>(place.parent);
  found.children.assign(place.children.begin(), place.children.end());
  return found;
}

bool CabledNode::neighbours_are_there(std::chrono::microseconds at_most) const {
  if (now_ < latency_) return true;
  const std::uint64_t needed = now_ - latency_ + 1;
  const auto behind = [&](const std::optional<Port>& peer) {
    return peer && shared_.state(static_cast<std::uint32_t>(peer->rank)).done.load(std::memory_order_acquire) < needed;
  };
  if (std::none_of(peers_.begin(), peers_.end(), behind)) return true;
  shared_.wake(rank_);
  // Who is half a latency behind does not wait for this node: it can get there.
  const std::uint64_t comfortable = std::max(needed, now_ - latency_ / 2);
  return std::all_of(peers_.begin(), peers_.end(), [&](const std::optional<Port>& peer) {
    return !peer || shared_.await(static_cast<std::uint32_t>(peer->rank), needed, comfortable, at_most);
  });
}

const CableRecord* CabledNode::arriving(int link) const {
  const std::optional<Port>& peer = peers_[static_cast<std::size_t>(link)];
  if (!peer || now_ < latency_) return nullptr;
  return &shared_.record(static_cast<std::uint32_t>(peer->rank), peer->link, now_ - latency_);
}

bool CabledNode::something_comes() const {
  for (const kernels::PushEnd& end : push) {
    if (end.opening || end.active) return true;
  }
  for (const kernels::PopEnd& end : pop) {
    if (end.opening || end.active) return true;
  }
  for (const kernels::UnitEnd& end : unit) {
    if (end.opening) return true;
  }
  for (int link = 0; link < kLinks; ++link) {
    const CableRecord* const record = arriving(link);
    if (record != nullptr && (record->valid != 0 || record->freed != 0)) return true;
  }
  return false;
}

bool CabledNode::wire_takes(int link) const {
  return has_cable(link) && budget_[static_cast<std::size_t>(link)] >= packet_bytes_ - 1e-9;
}

void CabledNode::send(int link, std::uint8_t channel, const std::uint32_t* words) {
  CableRecord& record = leaving(link);
  record.valid = 1;
  record.channel = channel;
  std::copy_n(words, packet_bytes_ / sizeof *words, record.words);
  budget_[static_cast<std::size_t>(link)] -= packet_bytes_;
  shared_.state(rank_).packets.store(++packets_, std::memory_order_relaxed);
}

bool CabledNode::cycle(std::chrono::microseconds at_most) {
  if (!neighbours_are_there(at_most)) return false;
  if (something_comes()) stay_awake();
  const bool evaluated = now_ - last_active_ <= kQuiet;
  for (int link = 0; link < kLinks; ++link) {
    if (!has_cable(link)) continue;
    CableRecord& record = leaving(link);
    record.valid = record.channel = record.freed = 0;
    record.up = 1;
    double& budget = budget_[static_cast<std::size_t>(link)];
    if (evaluated && budget < packet_bytes_) budget += bytes_per_cycle_;
  }
  if (evaluated) {
    evaluate();
    for (int link = 0; link < kLinks; ++link) {
      if (has_cable(link) && (leaving(link).freed != 0 || leaving(link).valid != 0)) stay_awake();
    }
  }
  ++now_;
  shared_.publish(rank_, now_);
  return true;
}

void CabledNode::moved() { shared_.state(rank_).moves.fetch_add(1, std::memory_order_relaxed); }

std::uint64_t CabledNode::moves() const {
  std::uint64_t sum = 0;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) sum += shared_.state(rank).moves.load(std::memory_order_relaxed);
  return sum;
}

void CabledNode::come() {
  RankState& state = shared_.state(rank_);
  const std::uint64_t number = state.came.load(std::memory_order_relaxed) + 1;
  state.came_at[number % 2].store(now_, std::memory_order_relaxed);
  state.came.store(number, std::memory_order_release);
}

// No clock is further ahead of another than the latency for each cable between them.
std::optional<std::uint64_t> CabledNode::meeting() const {
  const std::uint64_t number = shared_.state(rank_).came.load(std::memory_order_relaxed);
  std::uint64_t latest = 0;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const RankState& state = shared_.state(rank);
    if (state.came.load(std::memory_order_acquire) < number) return std::nullopt;
    latest = std::max(latest, state.came_at[number % 2].load(std::memory_order_relaxed));
  }
  return latest + latency_ * ranks_ + 1;
}

void CabledNode::leave() { shared_.state(rank_).left.store(1, std::memory_order_release); }

bool CabledNode::all_left() const {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (shared_.state(rank).left.load(std::memory_order_acquire) == 0) return false;
  }
  return true;
}

void CabledNode::report(std::uint64_t begin, std::uint64_t end) {
  shared_.state(rank_).begin.store(begin + 1, std::memory_order_relaxed);
  shared_.state(rank_).end.store(end, std::memory_order_relaxed);
}

void CabledNode::put_card(bool sends, std::uint32_t peer, std::uint32_t port, const kernels::ChannelCard& card) {
  kernels::ChannelCard& place = sends ? shared_.card(true, rank_, peer, port, card.sequence)
                                      : shared_.card(false, peer, rank_, port, card.sequence);
  kernels::ChannelCard content = card;
  content.sequence = 0;
  std::atomic_ref<std::uint64_t>(place.sequence).store(0, std::memory_order_release);
  std::memcpy(static_cast<void*>(&place), &content, sizeof content);
  std::atomic_ref<std::uint64_t>(place.sequence).store(card.sequence, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // of two that put theirs down, one sees the other's
}

std::optional<kernels::ChannelCard> CabledNode::card_of(bool sends, std::uint32_t peer, std::uint32_t port,
                                                        std::uint64_t sequence) const {
  kernels::ChannelCard& place =
      sends ? shared_.card(true, peer, rank_, port, sequence) : shared_.card(false, rank_, peer, port, sequence);
  if (std::atomic_ref<std::uint64_t>(place.sequence).load(std::memory_order_acquire) != sequence) return std::nullopt;
  kernels::ChannelCard found{};
  std::memcpy(static_cast<void*>(&found), &place, sizeof found);
  return std::atomic_ref<std::uint64_t>(place.sequence).load(std::memory_order_acquire) == sequence
             ? std::optional(found)
             : std::nullopt;
}

}  // namespace unisono::sim
