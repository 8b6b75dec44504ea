// What blocking calls on the lanes leave to the native engine: deadlines, dead peers, mismatches. Their threads hold no
// lock when they come here.
#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "core/text.hpp"
#include "engine/interrupt.hpp"
#include "engine/native_engine.hpp"
#include "network/wait_hook.hpp"

namespace unisono {

using namespace cclo;  // NOLINT(google-build-using-namespace): this file is part of the blocks' outer shell

namespace {

/// A collective call on the lanes, as the queue describes it.
std::string described(const Communicator& communicator, const FastPath::Blocking& blocking) {
  const Plan& plan = *blocking.plan;
  const Algorithm* algorithm = plan.must_be_direct ? plan.direct.algorithm : plan.plain.algorithm;
  return formatted("{} ({}, rank {}, sequence {}{})", name_of(plan.call.collective), communicator.title(),
                   communicator.rank, blocking.sequence,
                   algorithm == nullptr ? "" : std::string(", algorithm ") + algorithm->name);
}

}  // namespace

CallState* NativeEngine::Impl::watched(FastPath& fast_path, FastPath::Blocking& blocking) {
  const auto gone = [&] {
    const Collective collective =
        blocking.plan == nullptr ? blocking.transfer.collective : blocking.plan->call.collective;
    return Error(ErrorCode::kFreedCommunicator, std::string(name_of(collective)) + " (communicator " +
                                                    std::to_string(fast_path.number()) +
                                                    "): the communicator was freed by this rank meanwhile");
  };
  Communicator* communicator = communicators.find(fast_path.number());
  if (communicator == nullptr || communicator->fast_path.get() != &fast_path) {
    if (blocking.registered != 0) raise_if_ended(blocking);
    throw gone();
  }
  if (blocking.registered != 0) return calls.in_flight(blocking.registered);
  if (communicator->revoked) {  // since the call has begun
    throw Error(communicator->revoked_with, communicator->title() + " was revoked: " + communicator->reason);
  }
  CallState& call = calls.create();
  call.communicator = communicator;
  if (blocking.plan == nullptr) {
    static const auto message_program = [] {
      auto program = std::make_shared<CheckedProgram>();
      program->messages = true;
      return program;
    }();
    call.call = blocking.transfer;
    call.program = message_program;
    call.space = CallState::Space::kPointToPoint;
    call.tag = blocking.tag;
    call.wanted = blocking.wanted;
    set_deadline(call, {});
    call.mark = blocking.mark;
    blocking.registered = call.id;
    calls.watch(call);
    return calls.in_flight(blocking.registered);
  }
  const Plan& plan = *blocking.plan;
  call.call = plan.call;
  call.post_scale = plan.post_scale;
  call.params.clear();
  if (plan.varies) {
    call.call.count = blocking.count;
    call.params.assign(blocking.params.begin(), blocking.params.end());
  }
  call.algorithm = plan.must_be_direct ? plan.direct.algorithm : plan.plain.algorithm;
  call.program = plan.checked;
  call.space = CallState::Space::kCollective;
  call.signature = plan.signature_for(blocking.count);
  call.sequence = blocking.sequence;
  call.mark = blocking.mark;
  set_deadline(call, {});
  blocking.registered = call.id;
  calls.watch(call);
  return calls.in_flight(blocking.registered);
}

void NativeEngine::Impl::raise_if_ended(FastPath::Blocking& blocking) {
  const CallResult result = calls.result(blocking.registered);
  if (!result.complete) return;
  calls.forget(blocking.registered);
  blocking.registered = 0;
  throw Error(result.code, result.message, result.still_written);
}

Clock::time_point NativeEngine::Impl::look(FastPath& fast_path, FastPath::Blocking& blocking) {
  if (Interrupt::current().pending()) throw Error(ErrorCode::kRevoked, kInterrupted);
  const Turn turn(*this);
  if (CallState* call = watched(fast_path, blocking)) {
    call->lane_phase = blocking.phase;
    call->lane_awaited.assign(blocking.awaited.begin(), blocking.awaited.end());
    call->lane_anybody = blocking.anybody;
    // A call that waits for any of these is not recorded as waiting for all: a dump would see circles that are none.
    const std::span<const std::uint32_t> awaited = blocking.awaited;
    call->communicator->recorder->wait(blocking.mark, call->submitted, blocking.phase,
                                       blocking.anybody ? awaited.first(0) : awaited);
  }
  // A round that has work to do does not look at clocks and liveness.
  for (int round = 0; progress() && round < kRoundsAtOnce; ++round) {
  }
  raise_if_ended(blocking);
  return std::max(calls.next_event(blocking.registered), blocks.poe->now() + kLookInterval);
}

void NativeEngine::Impl::fault(FastPath& fast_path, FastPath::Blocking& blocking, const LaneFault& fault) {
  for (bool first = true;; first = false) {
    {
      const Turn turn(*this);
      CallState* call = watched(fast_path, blocking);
      if (first && call != nullptr) calls.lane_fault(*call, fault);
      progress();
      raise_if_ended(blocking);
    }
    WaitHook::sleep_for(std::chrono::microseconds(100));  // the peer's own description is on its way
  }
}

void NativeEngine::Impl::failed(FastPath& fast_path, const Error& error) {
  const Turn turn(*this);
  Communicator* communicator = communicators.find(fast_path.number());
  if (communicator == nullptr || communicator->fast_path.get() != &fast_path) return;
  communicators.revoke(*communicator, ErrorCode::kRevoked, error.what(), true);
  // A function of the user, whose error it is, knows nothing of the call.
  if (error.code() == ErrorCode::kInvalidOp) {
    throw Error(error.code(), described(*communicator, fast_path.blocking()) + ": " + error.what());
  }
}

void NativeEngine::Impl::completed(FastPath&, FastPath::Blocking& blocking) {
  const Turn turn(*this);
  calls.complete(blocking.registered);
  raise_or_forget(blocking);
}

void NativeEngine::Impl::raise_or_forget(FastPath::Blocking& blocking) {
  const CallResult result = calls.result(blocking.registered);
  calls.forget(blocking.registered);
  blocking.registered = 0;
  if (result.code != ErrorCode::kOk) throw Error(result.code, result.message, result.still_written);
}

}  // namespace unisono
