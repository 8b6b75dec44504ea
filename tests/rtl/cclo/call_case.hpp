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

/// Elements that are small whole numbers, truth values, or any bytes, as the datatype has it.
std::vector<std::byte> small_values(Datatype dtype, std::uint64_t bytes, std::uint64_t seed);

class CallCase {
 public:
  /// Bytes that the regions of one call take.
  static constexpr std::uint64_t kArea = std::uint64_t{4} << 20U;

  /// Algorithms that an engine carries out by descriptor alone.
  static std::vector<const Algorithm*> algorithms();

  /// Where one call of all ranks happens, and with what data.
  struct Binding {
    std::uint32_t communicator = 0, id = 0;
    std::uint64_t seed = 0;  ///< of the data
    std::uint64_t area = 0;  ///< the part of device memory that it has
    bool automatic = false;  ///< the engine chooses; the algorithm is the one that it will take
    reference::CountPattern pattern = reference::CountPattern::kUniform;  ///< of v-collectives
    std::uint64_t counts_seed = 0;                                        ///< likewise
  };

  /// None if the algorithm does not admit the call. Data are small numbers, so that sums in any order are equal.
  static std::optional<CallCase> make(const Algorithm& algorithm, const Call& call, const Binding& binding);
  /// The same with a sum, if the collective reduces, and the last rank as root.
  static std::optional<CallCase> make(const Algorithm& algorithm, std::uint32_t ranks, std::uint64_t count,
                                      Datatype dtype, std::uint32_t communicator, std::uint32_t id, std::uint64_t seed,
                                      std::uint64_t area);

  std::uint32_t id() const { return binding_.id; }
  CallDescriptor descriptor(std::uint32_t rank) const;
  /// Writes the rank's data into its node's memory, and something else around its dst.
  void place(sim::AnyNode& node, std::uint32_t rank) const;
  std::vector<std::vector<std::byte>> expected() const;
  /// What stands in the rank's dst.
  std::vector<std::byte> result(const sim::AnyNode& node, std::uint32_t rank) const;
  /// Whether src, and what stands around dst, are as `place` wrote them.
  bool intact(const sim::AnyNode& node, std::uint32_t rank) const;

 private:
  std::uint64_t address(std::uint32_t rank, std::size_t region) const;

  const Algorithm* algorithm_ = nullptr;
  reference::Job job_;
  std::vector<reference::RankInput> inputs_;
  Binding binding_;
};

}  // namespace unisono::rtl
