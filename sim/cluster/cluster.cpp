#include "sim/cluster/cluster.hpp"

namespace unisono::sim {

Cluster::Cluster(const ClusterConfig& config)
    : clock_khz_(config.network.clock_khz),
      has_firmware_(!config.firmware.empty()),
      network_(config.network),
      team_(config.engines == 0 ? config.network.nodes : config.engines, config.threads,
            [this](std::uint32_t node) { nodes_[node]->evaluate(); }) {
  const std::uint32_t engines = config.engines == 0 ? config.network.nodes : config.engines;
  for (std::uint32_t node = 0; node < engines; ++node) {
    NodeConfig own;
    own.node = node;
    own.seed = config.seed;
    own.memory = config.memory;
    own.memory.seed = config.seed * 1024 + node + 1;
    own.firmware = config.firmware;
    if (node == config.wave_node) own.wave = config.wave;
    own.trace = config.trace;
    nodes_.push_back(std::make_unique<Node>(own, network_));
  }
}

void Cluster::tick() {
  for (const auto& node : nodes_) node->look();
  team_.run();
  for (const auto& node : nodes_) node->commit();
  network_.tick();
}

}  // namespace unisono::sim
