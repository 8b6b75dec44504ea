// Threads that wait for calls, or make progress for others.
#include <algorithm>
#include <chrono>
#include <mutex>

#include "engine/native_engine.hpp"
#include "engine/native_waiting.hpp"
#include "network/wait_hook.hpp"

namespace unisono {

using namespace cclo;  // NOLINT(google-build-using-namespace): this file is part of the blocks' outer shell

namespace {

/// Longest sleep of who serves an engine where nobody waits, but calls are in flight.
constexpr std::chrono::microseconds kServedLook{20'000};
constexpr std::chrono::microseconds kServedNetworkLook{500};
constexpr std::chrono::microseconds kServedIdleNetworkLook{5000};

}  // namespace

bool NativeEngine::Impl::ends_soon(CallId id, CallResult& result) {
  shm::ShmPoe* const shared = blocks.poe->shared_memory();
  if (shared == nullptr) return false;
  const Turn turn(*this);
  // One round of all calls would be late for this one. Few polls: the lock is held, and others have deadlines.
  constexpr int kPolls = 64;
  for (int polls = 0;; ++polls) {
    const CallResult& now = calls.result(id);
    if (now.complete) {
      result = now;
      tell_ended();
      return true;
    }
    CallState* const call = calls.in_flight(id);
    const bool here = call != nullptr && (call->lane || call->transfer) && call->started && !call->mismatch_waits;
    if (!here || polls == kPolls || driven || shared->crowded() || WaitHook::installed()) return false;
    if (polls != 0) shm::pause_core();
    calls.progress_shared(*call);
  }
}

CallResult NativeEngine::test(CallId id) {
  CallResult result;
  {
    const Turn turn(*impl_);
    if (!impl_->calls.result(id).complete) impl_->progress();
    result = impl_->calls.result(id);
  }
  impl_->leave_if_ended();
  return result;
}

CallResult NativeEngine::wait(CallId id, std::chrono::microseconds at_most) {
  CallResult result;
  if (impl_->ends_soon(id, result)) {
    impl_->leave_to_others();
    return result;
  }
  impl_->wait_until(
      [&] {
        const CallResult& now = impl_->calls.result(id);
        if (now.complete) result = now;
        return now.complete;
      },
      at_most, Impl::Manner::kForeground);
  impl_->leave_to_others();
  if (result.complete) return result;
  const std::lock_guard lock(impl_->mutex);
  return impl_->calls.result(id);
}

bool NativeEngine::wait_any(std::span<const CallId> ids, std::chrono::microseconds at_most) {
  const auto any = [&] {
    return std::any_of(ids.begin(), ids.end(), [&](CallId id) { return impl_->calls.result(id).complete; });
  };
  bool found = false;
  impl_->wait_until([&] { return found = any(); }, at_most, Impl::Manner::kForeground);
  impl_->leave_to_others();
  if (found) return true;
  const std::lock_guard lock(impl_->mutex);
  return any();
}

bool NativeEngine::drive(std::chrono::microseconds at_most) {
  bool idle = false;
  impl_->wait_until([&] { return idle = impl_->idle(); }, at_most, Impl::Manner::kBackground);
  return idle;
}

Served NativeEngine::serve(Bell& bell, bool watched, std::chrono::microseconds at_most) {
  Impl& engine = *impl_;
  shm::ShmPoe* const shared = engine.blocks.poe->shared_memory();
  if (shared == nullptr) return Engine::serve(bell, watched, at_most);
  const Turn turn(engine);
  if (engine.idle() && !watched) {
    shared->disarm();
    return Served::kIdle;
  }
  if (engine.driven || engine.waiting != 0) {
    shared->disarm();
    return Served::kElsewhere;
  }
  if (engine.calls.idle() && !watched) {
    // What has gone may have to go again: nothing that comes meanwhile is worth a thread's attention.
    const Clock::time_point due = engine.blocks.poe->output_due();
    if (due > engine.blocks.poe->now()) {
      shared->disarm();
      bell.look = due;
      return Served::kLater;
    }
  }
  bool any = false;
  for (int round = 0; round < Impl::kRoundsAtOnce && engine.progress(); ++round) any = true;
  if (any) return Served::kBusy;
  if (!shared->arm(bell.armed)) return Served::kElsewhere;
  // What came before it was armed changes nothing.
  if (engine.progress()) return Served::kBusy;
  if (engine.idle() && !watched) {  // what was to be sent has gone
    shared->disarm();
    return Served::kIdle;
  }
  bell.word = &shared->segment()->endpoint(shared->self()).parked;
  const Clock::time_point now = engine.blocks.poe->now();
  // What comes over a network of other hosts does not ring this bell.
  const bool rings = engine.blocks.poe->sleeps_on_word();
  const auto look = engine.idle() ? kServedIdleNetworkLook : rings ? kServedLook : kServedNetworkLook;
  bell.look = engine.idle() && rings ? Clock::time_point::max() : std::min(engine.calls.next_deadline(), now + look);
  return Served::kArmed;
}

}  // namespace unisono
