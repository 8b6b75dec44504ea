// Calls that a carrier, as switches are, takes over from the native engine, and what it starts itself.
#include <mutex>
#include <optional>
#include <utility>

#include "engine/native_engine.hpp"

namespace unisono {

using namespace cclo;  // NOLINT(google-build-using-namespace): this file is part of the blocks' outer shell

void NativeEngine::Impl::Starter::start(const CallRequest& request, Listener listener) {
  CallState& call = engine_.admitted(request);
  try {
    if (is_transfer(call)) {
      call.transfer = transfer_of(call);
    } else if (call.plan->lanes) {
      CallQueue::take_lane(call, launch_of(call));
    }
  } catch (...) {
    engine_.calls.abandon(call);
    throw;
  }
  engine_.set_deadline(call, request.timeout);
  engine_.calls.submit(call);
  engine_.calls.when_complete(call.id,
                              [&engine = engine_, id = call.id, listener = std::move(listener)](const auto& result) {
                                {
                                  const std::lock_guard lock(engine.mutex);
                                  engine.calls.forget(id);
                                }
                                listener(result);
                              });
}

std::optional<std::uint32_t> NativeEngine::Impl::Starter::look_for(std::uint32_t number, std::uint32_t tag) {
  Communicator* const communicator = engine_.communicators.find(number);
  if (communicator == nullptr || communicator->revoked) return std::nullopt;
  const auto found = CallQueue::look_for(*communicator, {0, tag, true, false});
  return found ? std::optional(found->source) : std::nullopt;
}

void NativeEngine::Impl::offer_to_carrier(const CallRequest& request, CallState& call) {
  if (carrier == nullptr || call.space != CallState::Space::kCollective || request.algorithm != -1 || call.streams ||
      call.plan->lanes || call.call.collective == Collective::kProgram ||
      !left_to_switches(call.call, call.communicator->tuning)) {
    return;
  }
  call.kernel = carrier->carry(call.communicator->number, call.call, call.post_scale,
                               call.regions[static_cast<std::size_t>(Region::kSrc)],
                               call.regions[static_cast<std::size_t>(Region::kDst)]);
  if (!call.kernel) return;
  // That of switches, whose program members stand in for if these are given up.
  const int by_switches = find_algorithm(call.call.collective, "switch");
  const Algorithm* const algorithm = by_switches < 0 ? nullptr : &algorithms()[static_cast<std::size_t>(by_switches)];
  call.communicator->last->number.store(LastNumber::of(algorithm, true), std::memory_order_relaxed);
}

}  // namespace unisono
