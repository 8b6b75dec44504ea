// The switches of the network that take part in the collectives of a communicator, as the host of a device knows them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/state.hpp"
#include "platform/device/device.hpp"

namespace unisono {

/// One communicator's. Uses its device only when it is told to.
class GroupSwitches {
 public:
  /// Asks for them when the communicator is made, and gives it their tree. `nodes`: of its members, by rank; `most`:
  /// ranks and sessions that a device has places for. Throws Error(kDeviceLost) for a tree that does not fit.
  void ask(Device& device, cclo::Communicator& communicator, std::span<const std::uint32_t> nodes, std::uint32_t most);
  /// This rank has freed it. The switches keep what they know until all members have.
  void leave(Device& device, const cclo::Communicator& communicator);

  /// The session that leads to the switch above this rank.
  std::optional<std::uint32_t> above() const { return above_; }
  /// Which there are, or none and why; empty: the network has no such switches.
  const std::string& words() const { return words_; }

 private:
  bool asked_ = false;  ///< they, or who looks after them, have heard of the communicator
  std::optional<std::uint32_t> above_;
  std::string words_;
};

/// Whether the call runs over switches.
inline bool by_switches(const cclo::CallState& call) { return call.algorithm != nullptr && call.algorithm->switched; }

/// What such a call waits for at its switches, as a sentence behind others; empty: nothing.
std::string waits_at_switches(Device& device, const cclo::CallState& call);

}  // namespace unisono
