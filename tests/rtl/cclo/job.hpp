// A cluster of whole engines, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/host.hpp"

namespace unisono::rtl {

inline constexpr std::uint32_t kPlace = 3;  ///< of the communicator in the engines' tables
inline constexpr std::uint64_t kLimit = 400'000;

inline sim::ClusterConfig usual(std::uint32_t nodes) {
  sim::ClusterConfig config;
  config.network.nodes = nodes;
  config.network.policy = sim::Policy::kPause;
  config.memory.channels = sim::Node::kMemoryPorts;
  config.memory.one_memory = true;
  config.memory.read_latency = 30;
  config.memory.write_latency = 20;
  config.firmware = UNISONO_FIRMWARE_HEX;
  return config;
}

/// A cluster whose nodes have one communicator of all.
class Job {
 public:
  explicit Job(std::uint32_t size, const sim::Host::Agreed& agreed = {}) : cluster_(usual(size)) {
    for (std::uint32_t node = 0; node < size; ++node) {
      hosts_.emplace_back(cluster_, node);
      hosts_[node].run();
    }
    for (std::uint32_t node = 0; node < size; ++node) hosts_[node].create_communicator(kPlace, 77, size, agreed);
  }

  sim::Cluster& cluster() { return cluster_; }
  sim::Host& host(std::uint32_t node) { return hosts_[node]; }
  std::uint32_t size() const { return cluster_.nodes(); }

 private:
  sim::Cluster cluster_;
  std::vector<sim::Host> hosts_;
};

}  // namespace unisono::rtl
