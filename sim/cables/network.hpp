// A network of Verilated nodes of SMI's transport, joined by cables.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/cables/node.hpp"
#include "sim/cables/routes.hpp"

namespace unisono::sim {

struct CableSettings {
  int latency = 4;              ///< cycles from a node's pins to another's, at least 1
  double bytes_per_cycle = 20;  ///< 40 Gb/s at 250 MHz
  std::uint32_t seed = 1;
  int threads = 1;         ///< that share the nodes
  bool skip_quiet = true;  ///< nodes in which nothing moves are not evaluated; the results are the same
};

class CableNetwork {
 public:
  /// Nodes for the most ranks that will be loaded. A node costs memory and time whether it has cables or not.
  CableNetwork(int nodes, const CableSettings& settings);
  ~CableNetwork();

  /// Cables as in the routes, whose image each node loads; ranks beyond have no cable. Throws std::runtime_error if a
  /// node refuses its image, and names it.
  void load(const Routes& routes);

  CableNode& node(int rank) { return *nodes_[rank]; }
  int size() const { return size_; }
  std::uint64_t now() const { return now_; }
  /// Packets that have crossed any cable, since load().
  std::uint64_t crossed() const { return crossed_; }

  void cycle() { advance(1); }
  /// So many cycles. Nodes run ahead of one another by less than a cable's latency.
  void advance(int cycles);
  /// Runs until `done` says so, which is asked after as many cycles as a cable's latency. False if no packet crossed a
  /// cable for `quiet` cycles.
  bool run(const std::function<bool()>& done, std::uint64_t quiet = 5000);

  /// Cycles of all nodes together that were not evaluated, because nothing moved.
  std::uint64_t skipped() const;

  /// After a standstill: ranks on whose links packets wait for one another in a circle, "0 -> 1 -> 3 -> 2 -> 0"; empty
  /// if there is none. A link counts if all places at its other end are taken; its oldest packet waits for the link
  /// that the tables give it there.
  std::string circle() const;

 private:
  struct Link {
    std::unique_ptr<Cable> cable;
    Port peer;
    std::vector<CablePacket> sent;          ///< since the last exchange; the sender's
    std::vector<std::uint32_t> freed;       ///< likewise, bits of channels; the receiver's
    std::vector<Ring<CablePacket>> inside;  ///< by channel: what is on the way, or in the other end's queue
  };
  void run_nodes(int first, int step, int cycles);

  struct Place {
    int rank, link, channel;
  };
  /// Where the oldest packet behind a link goes on, if that is by a link; nothing if the link has places left.
  bool next(const Place& here, Place& following) const;

  class Team;

  CableSettings settings_;
  std::vector<std::unique_ptr<CableNode>> nodes_;
  Routes routes_;
  std::vector<std::vector<Link>> links_;  ///< by rank and link: what leaves there
  int size_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t crossed_ = 0;
  std::unique_ptr<Team> team_;
};

}  // namespace unisono::sim
