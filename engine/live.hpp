// The executor as it runs: over the lanes of one communicator, on memory, with kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/executor.hpp"
#include "engine/kernel_values.hpp"
#include "engine/lane_channels.hpp"

namespace unisono::cclo {

extern template class Executor<LaneChannels, KernelValues>;
using Live = Executor<LaneChannels, KernelValues>;

/// One rank's side of a set of lanes: their ends, what the present call binds, and the executor on both. Stays where it
/// is; not thread-safe.
class LiveRank {
 public:
  LiveRank() = default;
  LiveRank(const LiveRank&) = delete;
  LiveRank& operator=(const LiveRank&) = delete;

  /// `endpoints` by rank, for `copy`; both outlive this.
  void open(const shm::LaneSet& lanes, shm::LaneSpace space, std::uint32_t rank, std::uint32_t size,
            shm::KernelCopy* copy = nullptr, std::span<const std::uint32_t> endpoints = {}) {
    channels.open(lanes, space, rank, size);
    values.open(lanes, size, copy, endpoints);
    executor.emplace(channels, values, size);
  }

  LaneChannels channels;
  KernelValues values;
  std::optional<Live> executor;  ///< empty before `open`
};

}  // namespace unisono::cclo
