// Which calls a node was given, and by whom their ranks' nodes are known: what a trace needs to name its events.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/generated/spec.hpp"
#include "platform/device/registers.hpp"

namespace unisono::sim {

struct LoggedCall {
  CallDescriptor call;
  std::vector<std::uint32_t> nodes;  ///< of the ranks of its communicator
};

/// Follows what a host writes into the exchange memory.
class CallLog {
 public:
  explicit CallLog(std::uint32_t node) : node_(node) {}

  /// A write of the host to a register.
  void write(std::uint32_t offset, std::uint32_t value);
  /// A descriptor that came by another way.
  void call(std::span<const std::uint64_t, kCallDescriptorWords> descriptor);

  /// In the order in which they were given.
  const std::vector<LoggedCall>& calls() const { return calls_; }

 private:
  std::uint32_t node_;
  std::array<std::uint64_t, kCallDescriptorWords> slot_{};
  std::array<std::uint32_t, 1024> members_{};  ///< the table
  std::vector<LoggedCall> calls_;
};

/// "allreduce ring"; the operation alone where the engine chooses the algorithm.
std::string name_of(const CallDescriptor& call);

}  // namespace unisono::sim
