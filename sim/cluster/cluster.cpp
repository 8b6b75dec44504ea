#include "sim/cluster/cluster.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"
#include "sim/native/native_node.hpp"
#include "sim/network/cables.hpp"

namespace unisono::sim {
namespace {

/// Engines take what comes for what was sent, in the order in which it was.
NetworkConfig with_sessions(NetworkConfig config) {
  config.sessions = true;
  return config;
}

std::unique_ptr<Carrier> carrier_of(const ClusterConfig& config) {
  if (!config.routes.empty()) return make_cables(config.routes, config.network);
  return std::make_unique<Network>(with_sessions(config.network));
}

std::uint32_t engines_of(const ClusterConfig& config) {
  return config.engines == 0 ? config.network.nodes - units_at_nodes(config.network) : config.engines;
}

}  // namespace

Cluster::Cluster(const ClusterConfig& config)
    : kernels_(config.kernels.empty() ? nullptr
                                      : std::make_unique<const kernels::Library>(config.kernels, kernel_services())),
      clock_khz_(config.network.clock_khz),
      has_firmware_(!config.firmware.empty()),
      carrier_(carrier_of(config)),
      network_(dynamic_cast<Network*>(carrier_.get())),
      aggregation_(network_ != nullptr && network_->units() != 0
                       ? std::make_unique<Aggregation>(*network_, config.switches)
                       : nullptr),
      team_(engines_of(config), config.threads, [this](std::uint32_t node) { nodes_[node]->evaluate(); }) {
  const std::uint32_t engines = engines_of(config);
  for (const std::uint32_t node : config.native) {
    if (node < engines) continue;
    throw Error(ErrorCode::kInvalidArgument,
                formatted("node {} is to be native, but the cluster has {} nodes, from 0 on", node, engines));
  }
  const std::uint32_t addresses =
      network_ != nullptr ? network_->nodes() + network_->units() : engines;  // at most: some units are nodes
  for (std::uint32_t node = 0; node < engines; ++node) {
    if (std::find(config.native.begin(), config.native.end(), node) != config.native.end()) {
      nodes_.push_back(std::make_unique<NativeNode>(
          NativeNodeConfig{node, addresses, config.network.clock_khz, config.native_delay}, *carrier_));
      verilated_.push_back(nullptr);
      continue;
    }
    NodeConfig own;
    own.node = node;
    own.seed = config.seed;
    own.memory = config.memory;
    own.memory.seed = config.seed * 1024 + node + 1;
    own.firmware = config.firmware;
    if (node == config.wave_node) own.wave = config.wave;
    own.trace = config.trace;
    own.kernels = kernels_.get();
    own.clock_khz = config.network.clock_khz;
    own.skip = config.skip;
    own.check_skip = config.check_skip;
    own.trust_silence = config.trust_silence;
    auto made = std::make_unique<Node>(own, *carrier_);
    verilated_.push_back(made.get());
    nodes_.push_back(std::move(made));
  }
}

Node* Cluster::verilated(std::uint32_t number) const {
  if (verilated_[number] == nullptr) {
    throw Error(ErrorCode::kInvalidArgument, formatted("the engine of node {} is the native one", number));
  }
  return verilated_[number];
}

Network& Cluster::wanted_network() const {
  if (network_ == nullptr) throw Error(ErrorCode::kInvalidArgument, "the nodes of this cluster are on cables");
  return *network_;
}

void Cluster::advance(std::uint64_t most) {
  const bool empty = carrier_->under_way() == 0;
  tick();
  // The network looks after its sessions in the tick after the one in which its last frame has gone.
  if (most <= 1 || (carrier_->under_way() == 0) != empty) return;
  std::uint64_t cycles = std::min(most - 1, carrier_->next_event());
  for (const auto& node : nodes_) cycles = std::min(cycles, node->calm());
  if (cycles == 0) return;
  for (const auto& node : nodes_) node->pass(cycles);
  carrier_->skip(cycles);
}

double Cluster::evaluated() const {
  std::uint64_t cycles = 0, of = 0;
  for (const Node* node : verilated_) {
    if (node == nullptr) continue;
    cycles += node->evaluated();
    of += cycle();
  }
  return of == 0 ? 1 : static_cast<double>(cycles) / static_cast<double>(of);
}

void Cluster::tick() {
  std::size_t busy = 0;
  for (const auto& node : nodes_) {
    node->look();
    if (!node->idle()) ++busy;
  }
  // Threads that have nothing to do need not be woken.
  if (busy > 1) {
    team_.run();
  } else {
    for (const auto& node : nodes_) node->evaluate();
  }
  for (const auto& node : nodes_) node->commit();
  carrier_->tick();
}

}  // namespace unisono::sim
