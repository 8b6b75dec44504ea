// What a device has room for.
#pragma once

#include <cstdint>

namespace unisono {

/// Sizes of the hardware (docs/rtl/engine.md) that the capability word does not name.
struct DeviceLimits {
  static constexpr std::uint32_t kCommunicators = 16;
  static constexpr std::uint32_t kRanks = 64;           ///< of a communicator
  static constexpr std::uint32_t kSegmentBytes = 8128;  ///< a frame of 8192 bytes less the header
  static constexpr std::uint32_t kRxBuffers = 64;       ///< receive buffers for each peer,
  static constexpr std::uint32_t kAllRxBuffers = 512;   ///< and for all peers of the job; as many more are for grants
  static constexpr std::uint32_t kCalls = 32;           ///< outstanding
  static constexpr std::uint32_t kWaitFor = 2;          ///< predecessors of a call
};

}  // namespace unisono
