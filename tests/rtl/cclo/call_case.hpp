// One collective call on all ranks: descriptors, different data on each rank, and what must come out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/algorithm.hpp"
#include "core/generated/spec.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "sim/cluster/any_node.hpp"
#include "sim/cluster/node.hpp"

namespace unisono::rtl {

class CallCase {
 public:
  /// Bytes that the regions of one call take.
  static constexpr std::uint64_t kArea = std::uint64_t{4} << 20U;

  /// Algorithms that an engine carries out by descriptor alone.
  static std::vector<const Algorithm*> algorithms();

  /// `area` says which part of device memory it has; none if the algorithm does not admit the call. Data are small
  /// numbers, so that sums in any order are equal.
  static std::optional<CallCase> make(const Algorithm& algorithm, std::uint32_t ranks, std::uint64_t count,
                                      Datatype dtype, std::uint32_t communicator, std::uint32_t id, std::uint64_t seed,
                                      std::uint64_t area);

  std::uint32_t id() const { return id_; }
  CallDescriptor descriptor(std::uint32_t rank) const;
  /// Writes the rank's data into its node's memory.
  void place(sim::AnyNode& node, std::uint32_t rank) const;
  std::vector<std::vector<std::byte>> expected() const;
  /// What stands in the rank's dst.
  std::vector<std::byte> result(const sim::AnyNode& node, std::uint32_t rank) const;

 private:
  std::uint64_t address(std::uint32_t rank, std::size_t region) const;

  const Algorithm* algorithm_ = nullptr;
  Call call_;
  reference::Job job_;
  std::vector<reference::RankInput> inputs_;
  std::uint32_t communicator_ = 0, id_ = 0;
  std::uint64_t area_ = 0;
};

}  // namespace unisono::rtl
