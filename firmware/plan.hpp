// What the firmware keeps of a call: everything that does not change between calls with the same arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/algorithm.hpp"
#include "collectives/tuning.hpp"
#include "firmware/machine/port.hpp"

namespace unisono::firmware {

inline constexpr std::uint32_t kSlots = kMaxActiveCalls;
/// In a plan's context: it needs scratch or params.
inline constexpr std::uint32_t kNeedsMore = std::uint32_t{1} << 24U;
static_assert(port::kPlans > kSlots, "a plan is always free");
inline constexpr std::uint32_t kRules = 32;

/// The part of a call descriptor that decides which moves a call has, and the state of its communicator.
struct Key {
  std::uint32_t head = 0;   ///< collective, algorithm, func, dtype
  std::uint32_t flags = 0;  ///< wire datatype, in place, streams
  std::uint32_t communicator = 0;
  std::uint32_t state = 0;  ///< of the communicator
  std::uint32_t root = 0;
  std::uint32_t count_low = 0;
  std::uint32_t count_high = 0;
};

/// An admitted call. The unit finds it by its key.
struct alignas(128) Plan {
  Call call{};
  void (*step)(const Call& call, std::uint32_t s, Emit& emit) = nullptr;
  std::uint32_t steps = 0;
  std::uint32_t context = 0;  ///< space, algorithm number, datatype, as the engine takes them; kNeedsMore
  std::uint32_t signature = 0;
  // Bytes that the regions must have; 0 where the call uses none, or a stream.
  std::uint64_t src_bytes = 0;
  std::uint64_t dst_bytes = 0;
  std::uint64_t scratch_bytes = 0;
  std::uint64_t params_bytes = 0;
  std::uint32_t users = 0;  ///< slots that run it
  const Algorithm* algorithm = nullptr;
};
static_assert(sizeof(Plan) == std::size_t{1} << port::kNextPlanBit, "the unit gives the offset of a plan");

/// Rules of the machine, which come before those of the library. In the image, for the host to fill in.
struct Rules {
  std::uint32_t count;
  std::uint32_t reserved;
  Rule rules[kRules];
};
static_assert(sizeof(Rule) == 32);

/// Checks the call of the selected slot and makes its plan.
ErrorCode admit(const Key& key, Plan& plan);

}  // namespace unisono::firmware
