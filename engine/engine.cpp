#include "engine/engine.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/admit.hpp"
#include "engine/native_engine.hpp"
#include "engine/settings.hpp"

namespace unisono {

using namespace cclo;  // NOLINT(google-build-using-namespace): this file is part of the blocks' outer shell

namespace {

/// While it lives, the network may hold short messages back.
class Held {
 public:
  Held(Poe& poe, bool holds) : poe_(poe) { poe_.hold(holds); }
  ~Held() { poe_.hold(false); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Poe& poe_;
};

}  // namespace

EngineSettings NativeEngine::Impl::settings_in_force() const {
  EngineSettings now = settings;
  const JobOrders* const orders = blocks.poe->orders();
  if (orders == nullptr) return now;
  const auto ordered = [&](std::uint32_t& value, const std::atomic<std::uint32_t>& order) {
    if (const std::uint32_t given = order.load(std::memory_order_relaxed); given != 0) value = given;
  };
  ordered(now.eager_limit, orders->eager_limit);
  ordered(now.segment_bytes, orders->segment_bytes);
  ordered(now.rx_buffer_count, orders->rx_buffer_count);
  if (const std::uint64_t timeout = orders->timeout_us.load(std::memory_order_relaxed); timeout != 0) {
    now.timeout = std::chrono::microseconds(timeout);
  }
  try {
    check_settings(now);
  } catch (const Error&) {
    return settings;  // what a tool of this library would not have written
  }
  return now;
}

CallState& NativeEngine::Impl::admitted(const CallRequest& request) {
  Communicator& communicator = communicators.get(request.communicator);
  rx.drain();  // a revocation may have come
  if (communicator.revoked) {
    throw Error(ErrorCode::kRevoked, communicator.title() + " was revoked: " + communicator.reason);
  }
  for (const CallId id : request.wait_for) {
    if (!calls.known(id)) {
      throw Error(ErrorCode::kInvalidArgument,
                  "it is to follow call " + std::to_string(id) + ", but no call of this endpoint has that number");
    }
  }
  if (request.timeout.count() < 0) {
    throw Error(ErrorCode::kInvalidArgument, "a timeout of " + std::to_string(request.timeout.count()) +
                                                 " us was given; 0 is the communicator's, else it is positive");
  }
  CallState& call = calls.create();
  try {
    call.communicator = &communicator;
    admit(request, call);
    call.wait_for.assign(request.wait_for.begin(), request.wait_for.end());
  } catch (...) {
    calls.abandon(call);
    throw;
  }
  return call;
}

NativeEngine::NativeEngine(Poe& poe, const EngineSettings& settings) {
  check_settings(settings);
  impl_ = std::make_unique<Impl>(poe, settings);
  poe.land_in(&impl_->rbm);
}

NativeEngine::~NativeEngine() {
  try {
    impl_->communicators.for_each(
        [&](Communicator& communicator) { static_cast<void>(impl_->rx.close_window(communicator, false)); });
    static_cast<void>(impl_->blocks.poe->settle());
  } catch (const Error&) {
    // A child of fork: the network is the parent's, and so are those that write by it.
  }
  impl_->blocks.poe->land_in(nullptr);
}

Agreement NativeEngine::capabilities() const {
  const std::lock_guard lock(impl_->mutex);
  EngineSettings within = impl_->settings_in_force();
  within.segment_bytes = std::min(within.segment_bytes, impl_->blocks.poe->max_payload(Lane::kData));
  return capabilities_of(within);
}

void NativeEngine::create_communicator(std::uint32_t number, std::uint16_t epoch,
                                       std::span<const std::uint32_t> endpoints, const Agreement& agreed,
                                       const Grouping& grouping) {
  const std::lock_guard lock(impl_->mutex);
  impl_->communicators.create(number, epoch, endpoints, agreed, grouping);
  impl_->communicators.get(number).timeout = impl_->settings_in_force().timeout;
}

void NativeEngine::configure(const EngineSettings& settings) {
  check_settings(settings);
  const std::lock_guard lock(impl_->mutex);
  impl_->settings = settings;
  impl_->communicators.know(settings.rules);
}

EngineSettings NativeEngine::settings() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->settings_in_force();
}

CommunicatorState NativeEngine::state(std::uint32_t number) const {
  const std::lock_guard lock(impl_->mutex);
  const Communicator& communicator = impl_->communicators.get(number);
  CommunicatorState state;
  state.number = number;
  state.epoch = communicator.epoch;
  state.agreed = communicator.agreed;
  state.agreed.segment_bytes = communicator.segment_bytes;
  state.timeout = communicator.timeout;
  state.calls = communicator.recorder->begun();
  state.lanes = communicator.fast_path != nullptr;
  state.kept = communicator.fast_path == nullptr ? 0 : communicator.fast_path->kept();
  state.revoked = communicator.revoked;
  return state;
}

std::size_t NativeEngine::counters() const { return kNativeCounterNames.size(); }

const char* NativeEngine::counter_name(std::size_t position) const { return kNativeCounterNames[position]; }

std::uint64_t NativeEngine::counter(std::size_t position) const {
  const std::lock_guard lock(impl_->mutex);
  std::uint64_t value = impl_->counters.value(position);
  if (position == static_cast<std::size_t>(NativeCounter::kCalls)) {
    impl_->communicators.for_each([&](const Communicator& communicator) { value += communicator.recorder->begun(); });
  }
  return value;
}

void NativeEngine::conclude(std::uint32_t number) {
  const Turn turn(*impl_);
  impl_->rx.drain();  // a revocation may have come
  impl_->communicators.conclude(impl_->communicators.get(number));
}

void NativeEngine::add_switches(std::uint32_t number, const CallTree* tree, std::span<const std::uint32_t> switches) {
  const Turn turn(*impl_);
  impl_->communicators.add_switches(number, tree, switches);
}

void NativeEngine::free_communicator(std::uint32_t number) {
  const Turn turn(*impl_);
  impl_->communicators.free(number);
  if (impl_->carrier != nullptr) impl_->carrier->freed(impl_->starter, number);
  impl_->wake_waiting();
}

void NativeEngine::settle_numbers(std::uint32_t below) noexcept {
  const std::lock_guard lock(impl_->mutex);
  impl_->communicators.settle(below);
}

void NativeEngine::name_communicator(std::uint32_t communicator, const std::string& name) {
  const std::lock_guard lock(impl_->mutex);
  impl_->communicators.get(communicator).name(name);
}

void NativeEngine::set_timeout(std::uint32_t communicator, std::chrono::microseconds timeout) {
  const std::lock_guard lock(impl_->mutex);
  if (timeout.count() <= 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "a timeout of " + std::to_string(timeout.count()) + " us was given; it must be positive");
  }
  impl_->communicators.get(communicator).timeout = timeout;
}

std::uint32_t NativeEngine::rank(std::uint32_t communicator) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->communicators.get(communicator).rank;
}

std::uint32_t NativeEngine::size(std::uint32_t communicator) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->communicators.get(communicator).size;
}

void NativeEngine::bind_window(std::uint32_t communicator, Binding window) {
  // Peers that are at the old window are waited for without the lock: this rank's other calls go on.
  std::chrono::milliseconds patience{0};
  std::shared_ptr<FastPath> fast_path;
  std::string title;
  {
    const std::lock_guard lock(impl_->mutex);
    const Communicator& of = impl_->communicators.get(communicator);
    fast_path = of.fast_path;
    patience = std::chrono::duration_cast<std::chrono::milliseconds>(of.timeout);
    title = of.title();
  }
  if (fast_path != nullptr) {
    const std::string staying = fast_path->windows().hide(patience, false);
    if (!staying.empty()) {
      throw Error(ErrorCode::kTimeout, "window on " + title + ": " + staying +
                                           " was stopped while at the window that was bound before; that memory must "
                                           "not be used for anything else before that process has ended");
    }
  }
  const std::lock_guard lock(impl_->mutex);
  Communicator& of = impl_->communicators.get(communicator);
  if (impl_->rx.close_window(of, true)) {
    const std::string written = impl_->calls.settle(of, "the window that was bound before");
    if (!written.empty()) throw Error(ErrorCode::kTimeout, "window on " + of.title() + written, true);
  }
  of.window = window.data == nullptr ? Binding{} : window;
  if (fast_path != nullptr) fast_path->windows().show(of.window);
}

CallId NativeEngine::submit(const CallRequest& request) {
  const CallId id = submit(request, false);
  impl_->leave_if_ended();
  return id;
}

CallId NativeEngine::submit_awaited(const CallRequest& request) { return submit(request, true); }

CallId NativeEngine::submit(const CallRequest& request, bool awaited) {
  const Turn turn(*impl_);
  Impl& engine = *impl_;
  CallState& call = engine.admitted(request);
  const CallId id = call.id;
  try {
    if (Impl::is_transfer(call)) {
      call.transfer = Impl::transfer_of(call);
    } else if (call.plan->lanes) {
      CallQueue::take_lane(call, Impl::launch_of(call));
      if (request.plain() && request.call.collective != Collective::kProgram && !call.plan->varies) {
        call.communicator->fast_path->remember(call.plan);
      }
    } else if (call.space == CallState::Space::kCollective) {
      call.communicator->last->number.store(LastNumber::of(call.algorithm, request.algorithm == -1),
                                            std::memory_order_relaxed);
    }
  } catch (...) {
    engine.calls.abandon(call);
    throw;
  }
  call.hooks = request.hooks;
  call.kernel = request.kernel;
  impl_->offer_to_carrier(request, call);
  impl_->set_deadline(call, request.timeout);
  engine.calls.submit(call);
  try {
    // What the call can do by itself comes first: its messages are then on their way before anything is looked for.
    // Those of collectives that are started one right after the other go together.
    const bool by_messages = !call.lane && !call.transfer;
    const bool one_of_many =
        by_messages && !awaited && call.space == CallState::Space::kCollective && engine.in_burst(call.submitted);
    if (by_messages) {
      const Held held(*engine.blocks.poe, one_of_many);
      engine.calls.progress();
    }
    const bool complete = by_messages && engine.calls.result(id).complete;
    if (one_of_many && complete) engine.blocks.poe->poll();  // nobody may come back for what it has sent
    if (one_of_many || complete) {
      engine.tell_ended();
    } else {
      engine.progress();
    }
  } catch (const Error&) {
    // The call has begun: its number must be known to the caller, whom `test` and `wait` will tell.
  }
  return id;
}

CallId NativeEngine::submit_at_once(const Request& request) {
  Impl& engine = *impl_;
  const Turn turn(engine);
  Communicator* const communicator = engine.communicators.find(request.communicator);
  if (communicator == nullptr || communicator->revoked || communicator->fast_path == nullptr) return 0;
  std::shared_ptr<const Plan> plan = communicator->fast_path->plan_at_hand(request);
  if (plan == nullptr) return 0;
  CallState& call = engine.calls.create();
  const CallId id = call.id;
  call.communicator = communicator;
  call.call = plan->call;
  call.algorithm = plan->algorithm;
  call.program = plan->checked;
  call.signature = plan->signature;
  call.space = CallState::Space::kCollective;
  call.plan = std::move(plan);
  const LaneLaunch launch{{request.src.data, call.plan->src_bytes}, {request.dst.data, call.plan->dst_bytes}};
  try {
    CallQueue::take_lane(call, launch);
  } catch (...) {
    engine.calls.abandon(call);
    throw;
  }
  engine.set_deadline(call, {});
  engine.calls.submit_at_once(call);
  // What flies before it in its set must go on first.
  const CallState* const flying = engine.calls.in_flight(id);
  if (flying != nullptr && flying->lane->phase == LaneCall::Phase::kWaiting) engine.calls.progress_lanes(*communicator);
  engine.tell_ended();
  return id;
}

std::optional<CallResult> NativeEngine::take(CallId id) {
  const std::lock_guard lock(impl_->mutex);
  std::optional<CallResult> result(std::in_place);
  if (!impl_->calls.take(id, *result)) result.reset();
  return result;
}

/// A call that begins now, so that its hooks need not run under the lock. What is refused has not been touched by them.
std::uint64_t NativeEngine::run_hooked(const CallRequest& request) {
  {
    const Turn turn(*impl_);
    impl_->calls.abandon(impl_->admitted(request));
  }
  CallRequest without = request;
  without.hooks.reset();
  request.hooks->before();
  const std::uint64_t received = run(without);
  request.hooks->after(received);
  return received;
}

std::uint64_t NativeEngine::run(const CallRequest& request) {
  if (request.hooks && request.wait_for.empty()) return run_hooked(request);
  Impl& engine = *impl_;
  const Collective collective = request.call.collective;
  const bool transfers = (collective == Collective::kSend || collective == Collective::kRecv) && !request.probe;
  const bool one_sided = collective == Collective::kPut || collective == Collective::kGet;
  const bool may_be_short = request.wait_for.empty() && request.timeout.count() == 0 && !request.hooks &&
                            !request.streams() &&
                            (transfers || one_sided || request.lanes_carry || carried_by_lanes(collective));
  std::shared_ptr<FastPath> fast_path = may_be_short ? this->fast_path(request.communicator) : nullptr;
  if (fast_path != nullptr) {
    if (std::uint64_t received = 0; request.plain()) {
      const bool counted = request.vectors != nullptr;
      if (counted ? fast_path->try_vectors(request, *request.vectors) : fast_path->try_run(request, received))
        return received;
    }
    std::shared_ptr<const Plan> plan;
    LaneLaunch launch;
    std::vector<std::uint64_t> params;
    Transfer op;
    WindowAccess access;
    bool reaches = false;
    {
      const Turn turn(engine);
      CallState& call = engine.admitted(request);
      if (transfers) Impl::fill(op, call);
      if (one_sided) {
        access = CallQueue::access_of(call);
        reaches = access.bytes != 0 && engine.alive(call);
      }
      plan = call.plan;
      launch = Impl::launch_of(call);
      if (plan->varies) {
        params.assign(call.params.begin(), call.params.end());
        launch.params = params;
      }
      engine.calls.abandon(call);
    }
    if (transfers) {
      const std::uint64_t received = fast_path->run_transfer(op, request.call.count);
      if (request.status != nullptr) *request.status = op.status();
      return received;
    }
    if (reaches && fast_path->windows().reach_after_look(access)) return 0;
    // Of programs the words of the call do not say which one it is.
    const bool remember = request.algorithm == -1 && collective != Collective::kProgram && request.post_scale == 1;
    if (plan->lanes && fast_path->run(plan, launch, remember)) return 0;
  }
  if (fast_path == nullptr && collective == Collective::kSend && may_be_short && engine.send_at_once(request)) return 0;
  return Engine::run(request);
}

std::optional<MessageStatus> NativeEngine::look_for(const CallRequest& request) {
  const Turn turn(*impl_);
  CallState& call = impl_->admitted(request);
  const Wanted wanted = call.wanted;
  Communicator& communicator = *call.communicator;
  impl_->calls.abandon(call);
  impl_->progress();
  if (communicator.revoked) {
    throw Error(ErrorCode::kRevoked, communicator.title() + " was revoked: " + communicator.reason);
  }
  return CallQueue::look_for(communicator, wanted);
}

std::shared_ptr<FastPath> NativeEngine::fast_path(std::uint32_t communicator) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->communicators.get(communicator).fast_path;
}

LastAlgorithm NativeEngine::last_algorithm(std::uint32_t communicator) const {
  const std::lock_guard lock(impl_->mutex);
  const std::uint32_t number = impl_->communicators.get(communicator).last->number.load(std::memory_order_relaxed);
  const std::uint32_t position = number & ~LastNumber::kAutomatic;
  return {position == 0 ? nullptr : &algorithms()[position - 1], (number & LastNumber::kAutomatic) != 0};
}

void NativeEngine::set_background(const Background& begin) {
  const std::lock_guard lock(impl_->mutex);
  impl_->background = begin;
}

void NativeEngine::set_carrier(CallCarrier* carrier) {
  const std::lock_guard lock(impl_->mutex);
  impl_->carrier = carrier;
}

void NativeEngine::with_lock(const std::function<void()>& function) {
  const Turn turn(*impl_);
  function();
}

bool NativeEngine::has_bell() const { return impl_->blocks.poe->shared_memory() != nullptr; }

void NativeEngine::disarm() {
  if (shm::ShmPoe* const shared = impl_->blocks.poe->shared_memory()) shared->disarm();
}

void NativeEngine::when_complete(CallId id, Listener listener) {
  const Turn turn(*impl_);
  impl_->calls.when_complete(id, std::move(listener));
}

void NativeEngine::forget(CallId id) {
  const std::lock_guard lock(impl_->mutex);
  impl_->calls.forget(id);
}

void NativeEngine::progress() {
  {
    const Turn turn(*impl_);
    impl_->progress();
  }
  impl_->leave_if_ended();
}

void NativeEngine::revoke(std::uint32_t communicator, const std::string& reason) {
  const Turn turn(*impl_);
  impl_->communicators.revoke(impl_->communicators.get(communicator), ErrorCode::kRevoked, reason, true);
  impl_->wake_waiting();
}

}  // namespace unisono
