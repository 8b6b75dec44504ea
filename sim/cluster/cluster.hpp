// The nodes of a simulated cluster and the network between them, cycle by cycle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/cluster/any_node.hpp"
#include "sim/cluster/node.hpp"
#include "sim/cluster/team.hpp"
#include "sim/network/carrier.hpp"
#include "sim/network/network.hpp"
#include "sim/switch/aggregation.hpp"

namespace unisono::sim {

struct ClusterConfig {
  NetworkConfig network;              ///< its nodes are those of the cluster, and units behind them
  std::string routes;                 ///< folder of `unisono route --ports 1`: nodes are on cables; empty: the network
  std::uint32_t engines = 0;          ///< nodes that are engines, the first ones; 0: all that are no units
  std::vector<std::uint32_t> native;  ///< of these, the ones whose engine is the native one
  std::uint64_t native_delay = 0;     ///< cycles that pass before what these send leaves
  AxiMemoryConfig memory;             ///< of each node; seeds differ
  std::string firmware;               ///< see NodeConfig
  std::string kernels;                ///< library of kernels that Verilated nodes run; empty: none
  std::string wave;                   ///< of one node, if not empty
  std::uint32_t wave_node = 0;
  bool trace = false;                                           ///< see NodeConfig
  bool skip = true, check_skip = false, trust_silence = false;  ///< see NodeConfig
  std::uint64_t seed = 1;
  UnitMaker switches;    ///< what makes the network's switches; empty: those in C++
  unsigned threads = 1;  ///< that evaluate nodes at the same time; at most one per node is used
};

/// Same configuration, same accesses in the same cycles: same cycles ever after, with any number of threads.
class Cluster {
 public:
  /// Throws Error.
  explicit Cluster(const ClusterConfig& config);

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(nodes_.size()); }
  AnyNode& any_node(std::uint32_t number) { return *nodes_[number]; }
  /// An engine in Verilog. Throws Error(kInvalidArgument) if the node's is the native one.
  Node& node(std::uint32_t number) { return *verilated(number); }
  const Node& node(std::uint32_t number) const { return *verilated(number); }
  bool is_native(std::uint32_t number) const { return verilated_[number] == nullptr; }
  /// What carries frames: the network, or cables.
  const Carrier& carrier() const { return *carrier_; }
  Carrier& carrier() { return *carrier_; }
  bool has_network() const { return network_ != nullptr; }
  /// Throws Error(kInvalidArgument) if the nodes are on cables.
  const Network& network() const { return wanted_network(); }
  Network& network() { return wanted_network(); }
  /// Switches that take part in collectives; null: there are none.
  Aggregation* aggregation() { return aggregation_.get(); }
  const Aggregation* aggregation() const { return aggregation_.get(); }

  unsigned threads() const { return team_.threads(); }

  /// One cycle of all.
  void tick();
  /// One cycle, and as many more as pass without anything in any node or the network, `most` of them in all.
  void advance(std::uint64_t most);
  /// Of the cycles of engines in Verilog, the part that was evaluated; 1 without skipping.
  double evaluated() const;
  std::uint64_t cycle() const { return carrier_->cycle(); }
  std::uint64_t clock_khz() const { return clock_khz_; }
  /// Whether the nodes began with an image of their firmware.
  bool has_firmware() const { return has_firmware_; }

 private:
  Node* verilated(std::uint32_t number) const;
  Network& wanted_network() const;

  std::unique_ptr<const kernels::Library> kernels_;
  std::uint64_t clock_khz_;
  bool has_firmware_;
  std::unique_ptr<Carrier> carrier_;
  Network* network_;  ///< the same, if it is one
  std::unique_ptr<Aggregation> aggregation_;
  std::vector<std::unique_ptr<AnyNode>> nodes_;
  std::vector<Node*> verilated_;  ///< by number; null where the engine is the native one
  Team team_;                     ///< after the nodes: its threads end first
};

}  // namespace unisono::sim
