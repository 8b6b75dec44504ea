// Nodes that send what they are told to and note what they receive.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/network.hpp"

namespace unisono::sim {

struct Order {
  std::uint32_t destination = 0;
  std::uint32_t bytes = 0;
  std::uint16_t port = 0;  ///< number of the frame among those of its source
  std::uint64_t not_before = 0;
  std::uint32_t pause_after = 0;  ///< words after which the node pauses
  std::uint32_t pause_cycles = 0;
};

struct Arrival {
  std::uint32_t source = 0;
  std::uint16_t port = 0;
  std::uint32_t bytes = 0;
  std::uint64_t first = 0, last = 0;  ///< cycles of the first and last word
  std::vector<std::uint64_t> cycles;  ///< of every word
  std::uint32_t wrong_bits = 0;
  bool damaged = false;
  friend bool operator==(const Arrival&, const Arrival&) = default;
};

/// What stands at a place of a frame: different for each source, frame and place.
inline std::byte byte_of(std::uint32_t source, std::uint32_t port, std::uint32_t place) {
  return static_cast<std::byte>(mix((std::uint64_t{source} << 48U) ^ (std::uint64_t{port} << 32U) ^ place));
}

class Cluster {
 public:
  explicit Cluster(const std::string& text) : Cluster(parse_network(text)) {}
  explicit Cluster(const NetworkConfig& config)
      : network(config), received(network.nodes()), asleep(network.nodes()), nodes_(network.nodes()) {
    for (std::uint32_t u = 0; u < network.units(); ++u) {
      if (network.unit(u).at.is_node) asleep[network.unit(u).address] = true;
    }
  }

  void send(std::uint32_t source, Order order) { nodes_[source].orders.push_back(order); }
  /// Numbers the frames of a source by itself.
  void send(std::uint32_t source, std::uint32_t destination, std::uint32_t bytes, std::uint64_t not_before = 0) {
    send(source, {destination, bytes, nodes_[source].next_port++, not_before, 0, 0});
  }

  /// One cycle: all nodes act, then the network ticks. True: some node did something, or wanted to.
  bool step() {
    bool acted = false;
    for (std::uint32_t n = 0; n < network.nodes(); ++n) {
      acted = receive(n) || acted;
      acted = transmit(n) || acted;
    }
    network.tick();
    return acted;
  }
  void run(std::uint64_t cycles) {
    for (std::uint64_t i = 0; i < cycles; ++i) step();
  }
  /// Until everything has been sent and nothing is under way; false if that takes more than `limit` cycles.
  bool finish(std::uint64_t limit) {
    for (; limit > 0; --limit) {
      step();
      if (network.under_way() == 0 && done()) return true;
    }
    return false;
  }
  /// As `finish`, but time in which nothing happens is skipped. Counts the steps.
  bool finish_skipping(std::uint64_t limit, std::uint64_t& steps) {
    while (network.cycle() < limit) {
      ++steps;
      bool acted = step();
      if (network.under_way() == 0 && done()) return true;
      if (acted) continue;
      std::uint64_t quiet = std::min(network.next_event(), limit - network.cycle());
      for (const Node& node : nodes_) {
        if (node.orders.empty()) continue;
        const std::uint64_t wanted = std::max(node.orders.front().not_before, network.cycle());
        quiet = std::min(quiet, wanted - network.cycle());
      }
      network.skip(quiet);
    }
    return false;
  }
  bool done() const {
    for (const Node& node : nodes_) {
      if (!node.orders.empty()) return false;
    }
    return true;
  }
  std::size_t left(std::uint32_t node) const { return nodes_[node].orders.size(); }

  LinkCounters link(const std::string& name) const { return network.counters(network.link_named(name)); }
  LinkCounters total() const {
    LinkCounters sum;
    for (std::uint32_t i = 0; i < network.links(); ++i) {
      const LinkCounters one = network.counters(i);
      for (std::size_t d = 0; d < kDrops; ++d) sum.dropped[d] += one.dropped[d];
      sum.frames += one.frames;
      sum.bytes += one.bytes;
      sum.corrupted += one.corrupted;
      sum.duplicated += one.duplicated;
      sum.reordered += one.reordered;
      sum.truncated += one.truncated;
    }
    return sum;
  }
  /// Every frame pushed, and every copy, was popped or counted as dropped.
  void expect_conserved() const {
    const LinkCounters sum = total();
    std::uint64_t pushed = 0, delivered = 0, dropped = 0;
    for (std::uint32_t n = 0; n < network.nodes(); ++n) {
      pushed += network.pushed(n);
      delivered += network.delivered(n);
    }
    for (std::uint32_t u = 0; u < network.units(); ++u) {
      if (network.unit(u).at.is_node) continue;  // it has pushed and popped
      pushed += network.unit_sent(u);
      delivered += network.unit_taken(u);
    }
    for (const std::uint64_t count : sum.dropped) dropped += count;
    EXPECT_EQ(pushed + sum.duplicated, delivered + dropped);
  }

  Network network;
  std::vector<std::vector<Arrival>> received;  ///< by destination
  std::vector<bool> asleep;                    ///< nodes that pop nothing
  std::vector<Pushed> refused;

 private:
  struct Node {
    std::deque<Order> orders;
    std::uint32_t word = 0;
    std::uint64_t resume = 0;
    std::uint16_t next_port = 0;
    Arrival arriving;
  };

  bool transmit(std::uint32_t n) {
    Node& node = nodes_[n];
    if (node.orders.empty() || node.orders.front().not_before > network.cycle()) return false;
    if (node.resume > network.cycle() || !network.can_push(n)) return true;
    const Order& order = node.orders.front();
    std::array<std::byte, kWordBytes> data{};
    SentWord word;
    word.data = data.data();
    word.bytes = std::min(kWordBytes, order.bytes - node.word * kWordBytes);
    word.last = (node.word + 1) * kWordBytes >= order.bytes;
    word.destination = order.destination;
    word.frame_bytes = order.bytes;
    word.port = order.port;
    for (std::uint32_t i = 0; i < word.bytes; ++i) data[i] = byte_of(n, order.port, node.word * kWordBytes + i);
    const Pushed result = network.push(n, word);
    if (result != Pushed::kTaken) {
      refused.push_back(result);
      node.orders.pop_front();
      node.word = 0;
      return true;
    }
    EXPECT_FALSE(network.can_push(n)) << "two words in one cycle";
    ++node.word;
    if (node.word == order.pause_after) node.resume = network.cycle() + order.pause_cycles;
    if (word.last) {
      node.orders.pop_front();
      node.word = 0;
    }
    return true;
  }

  bool receive(std::uint32_t n) {
    if (asleep[n]) return false;
    const ReceivedWord* word = network.front(n);
    if (word == nullptr) return false;
    Arrival& at = nodes_[n].arriving;
    const std::uint32_t place = static_cast<std::uint32_t>(at.cycles.size()) * kWordBytes;
    EXPECT_EQ(word->first, place == 0);
    if (word->first) {
      at.source = word->source;
      at.port = word->port;
      at.bytes = word->frame_bytes;
      at.first = network.cycle();
    }
    EXPECT_EQ(at.source, word->source);
    EXPECT_EQ(word->bytes, std::min(kWordBytes, at.bytes - place));
    EXPECT_EQ(word->last, place + word->bytes == at.bytes);
    for (std::uint32_t i = 0; i < word->bytes; ++i) {
      const auto difference = static_cast<unsigned>(word->data[i] ^ byte_of(at.source, at.port, place + i));
      at.wrong_bits += static_cast<std::uint32_t>(std::popcount(difference));
    }
    at.cycles.push_back(network.cycle());
    at.last = network.cycle();
    at.damaged = word->damaged;
    const bool last = word->last;
    network.pop(n);
    EXPECT_EQ(network.front(n), nullptr) << "two words in one cycle";
    if (last) received[n].push_back(std::exchange(at, {}));
    return true;
  }

  std::vector<Node> nodes_;
};

}  // namespace unisono::sim
