// What nodes of SMI's transport have in common that stand in the processes of their ranks, whether Verilated or in
// software: the cables, the clock, and what ranks tell each other beside them. All is in memory that the ranks share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/smi_node.hpp"
#include "sim/cables/routes.hpp"
#include "sim/cables/shared_cables.hpp"

namespace unisono::sim {

/// A node computes one cycle in `evaluate`; when that happens, and when it need not, is decided here. Not thread-safe.
class CabledNode : public kernels::SmiNode {
 public:
  // Of all nodes of a job: unisono_smi_node's parameters.
  static constexpr int kLinks = 4;
  static constexpr int kVirtualChannels = 2;
  static constexpr int kChannels = 2 * kVirtualChannels;
  static constexpr int kLinkDepth = 64;       ///< places of a channel behind a cable
  static constexpr int kEndpointDepth = 256;  ///< places in front of a receiving end
  static constexpr int kChildDepth = 128;     ///< places for packets of each child of a reduction

  kernels::PortTree tree(std::uint32_t root, const std::vector<std::uint32_t>& members) const override;
  bool cycle(std::chrono::microseconds at_most) override;
  void moved() override;
  std::uint64_t moves() const override;
  void come() override;
  std::optional<std::uint64_t> meeting() const override;
  void leave() override;
  bool all_left() const override;
  void report(std::uint64_t begin, std::uint64_t end) override;
  void put_card(bool sends, std::uint32_t peer, std::uint32_t port, const kernels::ChannelCard& card) override;
  std::optional<kernels::ChannelCard> card_of(bool sends, std::uint32_t peer, std::uint32_t port,
                                              std::uint64_t sequence) const override;

 protected:
  /// Throws std::runtime_error that says what is wrong with the routes or the memory.
  explicit CabledNode(const kernels::SmiNodeSettings& settings);

  /// One cycle of the node: takes from `arriving` what has come, and puts what leaves into `leaving` and `send`.
  virtual void evaluate() = 0;
  /// The node is evaluated in the cycles to come, although nothing moves at its ends and cables.
  void stay_awake() { last_active_ = now_; }

  const RouteNode& own_routes() const { return routes_.nodes[rank_]; }
  bool has_cable(int link) const { return peers_[static_cast<std::size_t>(link)].has_value(); }
  /// What reaches this node by a cable in this cycle; null as long as nothing can have come.
  const CableRecord* arriving(int link) const;
  /// Of a cable, what goes beside packets: `freed` and `up`, which are 0 and 1 unless `evaluate` sets them.
  CableRecord& leaving(int link) const { return shared_.record(rank_, link, now_); }
  /// Whether a cable takes a packet in this cycle.
  bool wire_takes(int link) const;
  /// Sends one. `words` are as many as a packet has.
  void send(int link, std::uint8_t channel, const std::uint32_t* words);

  std::uint32_t rank_;
  std::uint32_t packet_bytes_;

 private:
  bool neighbours_are_there(std::chrono::microseconds at_most) const;
  bool something_comes() const;

  std::uint64_t latency_;
  double bytes_per_cycle_;
  SharedCables shared_;
  const Routes routes_;
  std::array<std::optional<Port>, kLinks> peers_;  ///< by link: the other end of its cable
  std::array<double, kLinks> budget_{};            ///< bytes that the wire takes in this cycle
  std::uint64_t last_active_ = 0;                  ///< cycle in which something has moved
  std::uint64_t packets_ = 0;
};

}  // namespace unisono::sim
