// Cores on an ideal network.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "tests/rtl/core/core_node.hpp"

namespace unisono::rtl {

class CoreMachine {
 public:
  CoreMachine(std::uint32_t size, const MachineSettings& settings) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      nodes_.push_back(std::make_unique<CoreNode>(rank, size, settings));
    }
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  CoreNode& operator[](std::uint32_t rank) { return *nodes_[rank]; }
  std::uint64_t cycle() const { return cycle_; }
  bool quiet() const { return network_.empty(); }

  void tick() {
    for (auto& node : nodes_) node->tick(cycle_, network_);
    // The latency is the same for all, so the order of leaving is that of coming.
    while (!network_.empty() && network_.front().ready <= cycle_) {
      const std::uint32_t to = network_.front().to;
      nodes_[to]->deliver(std::move(network_.front()));
      network_.pop_front();
    }
    ++cycle_;
  }
  void run(std::uint64_t cycles) {
    for (std::uint64_t i = 0; i < cycles; ++i) tick();
  }

 private:
  std::vector<std::unique_ptr<CoreNode>> nodes_;
  std::deque<Packet> network_;
  std::uint64_t cycle_ = 0;
};

}  // namespace unisono::rtl
