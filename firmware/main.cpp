// The firmware: takes work items, starts calls, and makes one generation step of a call at a time.
//
// A call that is like an earlier one, down to count and root, finds its plan and is under way within a few dozen
// instructions; another one is admitted first (admission.cpp). A plan stays until another call needs its place.
#include "collectives/generate.hpp"
#include "core/reserved_tags.hpp"
#include "firmware/machine/port.hpp"
#include "firmware/plan.hpp"

namespace unisono::firmware {

namespace {

using namespace port;  // NOLINT(google-build-using-namespace)

void no_step(const Call& /*call*/, std::uint32_t /*s*/, Emit& /*emit*/) {}

/// Stands where there is no call, or none any more: its steps do nothing, and have no end that is reached.
constinit Plan none{.step = no_step, .context = kNeedsMore};

struct Slot {
  Plan* plan = &none;
  std::uint32_t step = 0;  ///< the next one
};

constinit Plan plans[kPlans]{};
constinit Slot slots[kSlots]{};

/// Words of the call descriptor.
enum Word : std::uint32_t {
  kHead = 0,
  kFlags = 1,
  kCommunicatorWord = 2,
  kRoot = 3,
  kTag = 4,
  kCountLow = 6,
  kCountHigh = 7,
};
/// 64-bit words of it.
enum LongWord : std::uint32_t { kSrcBytes = 5, kDstBytes = 7, kScratchBytes = 9, kParamsBytes = 11 };

UNISONO_INLINE void fail(ErrorCode code) { tell<kGroupControl, kControlFail>(static_cast<std::uint32_t>(code)); }

/// Admits the call of the selected slot, which has no plan. The new plan, or `none` if it was refused.
[[gnu::noinline]] Plan* admit_new(std::uint32_t home) {
  // Its place by preference; else, where the unit will not find it again.
  std::uint32_t at = home;
  while (plans[at].users != 0) at = (at + 1) % kPlans;
  Plan& plan = plans[at];
  tell<kGroupControl, kControlForget>(std::uint32_t{1} << at);
  const Key key{
      descriptor<kHead>(), descriptor<kFlags>(),    descriptor<kCommunicatorWord>(), communicator<kCommunicatorState>(),
      descriptor<kRoot>(), descriptor<kCountLow>(), descriptor<kCountHigh>()};
  const ErrorCode code = admit(key, plan);
  if (code != ErrorCode::kOk) {
    fail(code);
    return &none;
  }
  if (at == home) tell<kGroupControl, kControlKeep>(at);
  return &plan;
}

/// Starts the call of the selected slot. The plan that the slot uses from now on, or `none`.
UNISONO_INLINE Plan* start(std::uint32_t item) {
  const std::uint32_t offset = item & (kPlans - 1) << kNextPlanBit;
  Plan* plan = reinterpret_cast<Plan*>(reinterpret_cast<char*>(plans) + offset);
  if ((item >> kNextHitBit & 1U) == 0) [[unlikely]]
    plan = admit_new(offset >> kNextPlanBit);
  // All loads first: an instruction of the unit waits until those before it are done.
  const std::uint64_t src = plan->src_bytes;
  const std::uint64_t dst = plan->dst_bytes;
  const std::uint32_t context = plan->context;
  const std::uint32_t signature = plan->signature;
  const std::uint32_t users = plan->users;
  std::uint32_t tag = 0;
  std::uint32_t lacking = lacks<kSrcBytes>(src);
  lacking |= lacks<kDstBytes>(dst);
  tell<kGroupControl, kControlSign>(signature);
  if ((context & (kNeedsMore | kSpacePointToPoint)) != 0) {
    if (plan == &none) return plan;
    if ((context & kNeedsMore) != 0) {
      lacking |= lacks<kScratchBytes>(plan->scratch_bytes) | lacks<kParamsBytes>(plan->params_bytes);
    }
    if ((context & kSpacePointToPoint) != 0) {
      tag = descriptor<kTag>();
      if (!is_message_tag(tag)) [[unlikely]] {
        fail(ErrorCode::kInvalidArgument);
        return &none;
      }
    }
  }
  if (lacking != 0) [[unlikely]] {
    fail(ErrorCode::kBufferTooSmall);
    return &none;
  }
  plan->users = users + 1;
  tell<kGroupControl, kControlContext>(context, tag);
  return plan;
}

}  // namespace

/// The slot stepped last asked for more than a move or the lists can hold.
[[gnu::noinline]] void refuse(std::uint32_t item) {
  tell<kGroupControl, kControlClear>();
  fail(static_cast<ErrorCode>(item >> kNextFaultCodeBit & 0xffffU));
}

extern "C" [[noreturn]] void unisono_main() {
  // The slot at hand stays in registers: most items are for the slot of the item before.
  std::uint32_t again = kWorkMore;  // the item that goes on with it
  Plan* plan = &none;
  std::uint32_t step = 0;
  std::uint32_t steps = 0;
  Emit emit;
  for (;;) {
    const std::uint32_t item = ask<kGroupControl, kControlNext>();
    if (item != again) [[unlikely]] {
      const std::uint32_t kind = item & 3U;
      if (kind != kWorkStart) {
        if (static_cast<std::int32_t>(item) < 0) {
          refuse(item);
          --plan->users;
          plan = &none;
          continue;
        }
        if (kind == kWorkControl) {
          tell<kGroupControl, kControlForget>(~std::uint32_t{0});
          continue;
        }
      }
      slots[again >> kNextSlotBit] = {plan, step};
      again = (item & (kSlots - 1) << kNextSlotBit) | kWorkMore;
      if (kind == kWorkStart) {
        plan = start(item);
        step = 0;
      } else {
        plan = slots[again >> kNextSlotBit].plan;
        step = slots[again >> kNextSlotBit].step;
      }
      steps = plan->steps;
    }
    plan->step(plan->call, step, emit);
    ++step;
    if (step == steps) [[unlikely]] {
      tell<kGroupControl, kControlEnd>();
      --plan->users;
      plan = &none;
    }
  }
}

}  // namespace unisono::firmware
