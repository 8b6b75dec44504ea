// The tables of communicators and sessions in a device (docs/rtl/communicators.md), as its host writes them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/state.hpp"
#include "platform/device/device.hpp"
#include "platform/device/limits.hpp"

namespace unisono {

/// Places of communicators count from 0. Not thread-safe. What the device throws goes through.
class CommunicatorTable {
 public:
  explicit CommunicatorTable(Device& device) : device_(device) {}

  /// Puts a communicator into a place, and opens sessions to its members. `nodes`: theirs, by rank. `to_switch`: the
  /// session to the switch above this rank.
  void write(std::uint32_t place, const cclo::Communicator& communicator, std::span<const std::uint32_t> nodes,
             std::optional<std::uint32_t> to_switch);
  /// Says whether it is valid and whether it was revoked (registers::kState...). The device counts such words.
  void write_state(std::uint32_t place, const cclo::Communicator& communicator, std::uint32_t flags);
  /// Memory of the device that peers reach; of no bytes: none.
  void set_window(std::uint32_t place, std::uint64_t address, std::uint64_t bytes);

 private:
  void open_session(std::uint32_t node);

  Device& device_;
  std::array<std::uint32_t, DeviceLimits::kCommunicators> changes_{};  ///< of a place, as the device counts them
  std::array<std::uint32_t, DeviceLimits::kCommunicators> members_{};  ///< valid in the table
  std::array<bool, DeviceLimits::kRanks> sessions_{};
};

}  // namespace unisono
