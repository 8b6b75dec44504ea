#include "engine/engine.hpp"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>

#include "core/cores.hpp"
#include "core/crc32c.hpp"
#include "core/reserved_tags.hpp"
#include "core/text.hpp"
#include "core/user_op.hpp"
#include "engine/admit.hpp"
#include "engine/call_queue.hpp"
#include "engine/communicators.hpp"
#include "engine/consensus.hpp"
#include "engine/counters.hpp"
#include "engine/dmp.hpp"
#include "engine/fast_path.hpp"
#include "engine/flight_report.hpp"
#include "engine/interrupt.hpp"
#include "engine/rbm.hpp"
#include "engine/rx.hpp"
#include "engine/short_send.hpp"
#include "engine/stream_ports.hpp"
#include "engine/tx.hpp"
#include "network/wait_hook.hpp"

namespace unisono {
namespace {

using namespace cclo;  // NOLINT(google-build-using-namespace): this file is the blocks' outer shell

/// Longest sleep of a waiting thread: how late a dead peer may be noticed.
constexpr std::chrono::microseconds kLongestSleep{10'000};
/// The same without shared memory in jobs of many endpoints, which may all be threads of one process: if each of a
/// thousand looked every 10 ms, nothing else would be done. Networks tell of most ends.
constexpr std::uint32_t kMany = 64;
std::chrono::microseconds longest_sleep_of(const Poe& poe) {
  return poe.size() <= kMany
             ? kLongestSleep
             : std::min<std::chrono::microseconds>(kLongestSleep * (poe.size() / 32), std::chrono::milliseconds(200));
}
/// The same where nobody waits, but calls are in flight.
constexpr std::chrono::microseconds kServedLook{20'000};
constexpr std::chrono::microseconds kServedNetworkLook{500};
constexpr std::chrono::microseconds kServedIdleNetworkLook{5000};
/// A busy engine looks at the clock once in so many rounds.
constexpr std::uint32_t kRoundsPerLook = 256;
/// Rounds of progress that one look of a waiting call makes at most.
constexpr int kRoundsAtOnce = 8;
/// Calls that are started with less time than this between them are started together, up to so many of them.
constexpr std::chrono::microseconds kBurst{20};
constexpr std::uint32_t kMostOfBurst = 16;

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
/// How often peers' liveness and deadlines are examined while idle, at most.
constexpr std::chrono::microseconds kLookInterval{2'000};

constexpr const char* kInterrupted = "the call was interrupted by its caller";

std::uint32_t hash_of_algorithms() {
  static const std::uint32_t hash = [] {
    std::string text;
    for (const Algorithm& algorithm : algorithms()) {
      text += name_of(algorithm.collective);
      text += ':';
      text += algorithm.name;
      text += ';';
    }
    return crc32c({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }();
  return hash;
}

Capability capability_of_engine() {
  Capability capability;
  capability.version = 1;
  for (const Datatype dtype : kAllDatatype) {
    if (dtype != Datatype::kNone) capability.datatypes |= 1U << static_cast<unsigned>(dtype);
  }
  for (const Func func : kAllFunc) {
    if (func != Func::kNone) {
      const unsigned bit = is_user(func) ? 15 : static_cast<unsigned>(func);
      capability.funcs = static_cast<std::uint16_t>(capability.funcs | 1U << bit);
    }
  }
  capability.lists = true;
  capability.fan_in = true;
  capability.remote_memory = true;
  capability.rendezvous = true;
  capability.programs = true;
  capability.lanes = true;
  capability.radices = true;
  return capability;
}

void check_settings(const EngineSettings& settings) {
  const auto refuse = [](const char* name, std::uint64_t given, const char* allowed) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(name) + " is " + std::to_string(given) + "; allowed are " + allowed);
  };
  if (settings.segment_bytes < 64 || settings.segment_bytes > (1U << 30U)) {
    refuse("segment_bytes", settings.segment_bytes, "64 to 2^30");
  }
  if (settings.eager_limit > (1U << 30U)) refuse("eager_limit", settings.eager_limit, "0 to 2^30");
  if (settings.rx_buffer_count < 1 || settings.rx_buffer_count > 65536) {
    refuse("rx_buffer_count", settings.rx_buffer_count, "1 to 65536");
  }
  if (settings.hardware_peers && settings.lanes) {
    throw Error(ErrorCode::kInvalidArgument,
                "hardware_peers and lanes are both set; engines in hardware have no memory "
                "in common with others, so lanes must be off");
  }
  if (settings.timeout.count() <= 0) {
    throw Error(ErrorCode::kInvalidArgument, "timeout is " + std::to_string(settings.timeout.count()) +
                                                 " us; every call has a deadline, so it must be positive");
  }
}

/// Holds the engine's lock. Once it has given that back, it calls the listeners of calls that have ended.
template <class Impl>
class Turn {
 public:
  explicit Turn(Impl& engine) : engine_(engine) { engine_.mutex.lock(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { give_back(); }
  /// Gives the lock back for a moment, if there is something to tell.
  void tell() {
    if (!engine_.calls.has_reports()) return;
    give_back();
    engine_.mutex.lock();
  }
  void lock() { engine_.mutex.lock(); }
  void unlock() { engine_.mutex.unlock(); }

 private:
  void give_back() {
    const CallQueue::Reports reports = engine_.calls.take_reports();
    engine_.mutex.unlock();
    for (const auto& [listener, result] : reports) listener(result);
  }

  Impl& engine_;
};

}  // namespace

class NativeEngine::Impl final : public FastPath::Watch {
 public:
  Impl(Poe& poe, const EngineSettings& given)
      : settings(given),
        counters(poe.counters(poe.self())),
        tx(blocks),
        rx(blocks),
        rbm(blocks),
        dmp(blocks),
        calls(blocks),
        communicators(blocks, settings, *this) {
    blocks = {&poe, &tx, &rx, &rbm, &dmp, &calls, &communicators, &counters, &streams};
    communicators.know(settings.rules);
    if (poe.orders() != nullptr) resets = poe.orders()->resets.load(std::memory_order_relaxed);
  }

  /// The settings, with what tools have asked for, as far as that is allowed.
  EngineSettings settings_in_force() const {
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

  /// Gives up all communicators if a tool has asked for that.
  void obey() {
    const JobOrders* const orders = blocks.poe->orders();
    if (orders == nullptr || orders->resets.load(std::memory_order_relaxed) == resets) return;
    resets = orders->resets.load(std::memory_order_relaxed);
    communicators.for_each([&](Communicator& communicator) {
      communicators.revoke(communicator, ErrorCode::kRevoked, "the job was reset by its user", true);
    });
  }

  /// One round of everything. Returns whether anything was done.
  bool progress() {
    bool any = blocks.poe->poll();
    any = rx.drain() || any;
    any = tx.flush() || any;
    any = calls.progress() || any;
    communicators.for_each([&](Communicator& c) {
      if (!c.gets.empty()) any = rx.serve(c) || any;
    });
    if (streams.reading != 0) any = receive_for_kernels() || any;
    if (!streams.to_peers.empty()) any = send_to_ports() || any;
    if (carrier != nullptr) any = carrier->progress(starter) || any;
    if (!any || ++rounds % kRoundsPerLook == 0) {
      const Clock::time_point now = blocks.poe->now();
      if (now >= next_look || now >= calls.next_deadline()) {
        next_look = now + kLookInterval;
        obey();
        // A peer that is found dead may have sent something before.
        if (rx.drain(Rx::Look::kInAnyCase)) {
          calls.progress();
          any = true;
        }
        any = calls.examine(now) || any;
      }
    }
    tell_ended();
    return any;
  }

  /// Lets others that wait know of calls that have ended.
  void tell_ended() {
    if (!calls.take_ended()) return;
    ended.notify_all();
    // A thread that sleeps for several engines, or for a descriptor, hears of every end.
    if (shm::ShmPoe* shared = blocks.poe->shared_memory(); shared != nullptr && shared->armed()) {
      shm::wake_if_parked(shared->segment()->endpoint(shared->self()));
    }
  }

  /// Admits a request as a call of its communicator, which must not be revoked. Throws Error.
  CallState& admitted(const CallRequest& request) {
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

  /// Begins to receive what peers have sent to ports that kernels wait at, and that no call uses. Returns whether there
  /// was any.
  bool receive_for_kernels() {
    bool any = false;
    for (std::uint32_t port = 0; port < StreamPorts::kPorts; ++port) {
      if (streams.readers[port] == 0 || streams.used(StreamSide::kToKernel, port)) continue;
      std::optional<CallRequest> receive;
      communicators.for_each([&](Communicator& communicator) {
        if (receive || communicator.revoked) return;
        const std::uint32_t tag = stream_tag(port);
        const std::optional<MessageStatus> found = CallQueue::look_for(communicator, {0, tag, true, false});
        if (!found) return;
        receive.emplace();
        receive->communicator = communicator.number;
        receive->tag = tag;
        receive->reserved_tag = true;
        receive->call.collective = Collective::kRecv;
        receive->call.dtype = found->dtype;
        receive->call.root = found->source;
        receive->call.count = found->bytes / std::max<std::uint64_t>(1, bytes_of(found->dtype));
        receive->dst_port = static_cast<std::int8_t>(port);
      });
      if (!receive) continue;
      CallState& call = admitted(*receive);
      if (is_transfer(call)) call.transfer = transfer_of(call);
      set_deadline(call, {});
      calls.submit(call);
      // Nobody has asked for it; whoever reads at the port hears of its failure there.
      calls.when_complete(call.id, [this, id = call.id](const CallResult&) {
        const std::lock_guard lock(mutex);
        calls.forget(id);
      });
      any = true;
    }
    return any;
  }

  /// Sends what moves of programs have made for stream ports of peers.
  bool send_to_ports() {
    const std::vector<std::shared_ptr<PortMessage>> messages = std::exchange(streams.to_peers, {});
    for (const std::shared_ptr<PortMessage>& message : messages) {
      try {
        CallRequest send;
        send.communicator = message->communicator;
        send.call.collective = Collective::kSend;
        send.call.dtype = message->dtype;
        send.call.root = message->peer;
        send.call.count = message->elements.size() / bytes_of(message->dtype);
        send.src = {message->elements.data(), message->elements.size()};
        send.dst_port = static_cast<std::int8_t>(message->port);
        send.timeout = message->timeout;
        CallState& call = admitted(send);
        if (is_transfer(call)) call.transfer = transfer_of(call);
        set_deadline(call, send.timeout);
        calls.submit(call);
        calls.when_complete(call.id, [this, message, id = call.id](const CallResult& result) {
          const std::lock_guard lock(mutex);
          message->ended = true;
          message->code = result.code;
          message->text = result.message;
          calls.forget(id);
        });
      } catch (const Error& error) {
        message->ended = true;
        message->code = error.code();
        message->text = error.what();
      }
    }
    return !messages.empty();
  }

  /// Goes on with a kernel at a port until `step`, under the lock, says that it has done, or `at_most` has passed.
  template <class Step>
  void serve_kernel(std::chrono::microseconds at_most, Step&& step);

  /// Calls of the carrier, as if somebody had submitted them.
  class Starter final : public CallStarter {
   public:
    explicit Starter(Impl& engine) : engine_(engine) {}
    void start(const CallRequest& request, Listener listener) override {
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
      engine_.calls.when_complete(
          call.id, [&engine = engine_, id = call.id, listener = std::move(listener)](const auto& result) {
            {
              const std::lock_guard lock(engine.mutex);
              engine.calls.forget(id);
            }
            listener(result);
          });
    }
    std::optional<std::uint32_t> look_for(std::uint32_t number, std::uint32_t tag) override {
      Communicator* const communicator = engine_.communicators.find(number);
      if (communicator == nullptr || communicator->revoked) return std::nullopt;
      const auto found = CallQueue::look_for(*communicator, {0, tag, true, false});
      return found ? std::optional(found->source) : std::nullopt;
    }
    void free(std::uint32_t number) override { engine_.communicators.free(number); }

   private:
    Impl& engine_;
  };

  /// Has the carrier take a call that is about to be submitted, if it wants it.
  void offer_to_carrier(const CallRequest& request, CallState& call) {
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

  static bool is_transfer(const CallState& call) {
    return call.communicator->fast_path != nullptr && call.space == CallState::Space::kPointToPoint && !call.probe;
  }
  static void fill(Transfer& op, const CallState& call) {
    op.sends = call.call.collective == Collective::kSend;
    op.peer = call.call.root;
    op.tag = call.tag;
    op.wanted = call.wanted;
    op.dtype = call.call.dtype;
    op.data = call.regions[static_cast<std::size_t>(op.sends ? Region::kSrc : Region::kDst)].data;
    op.bytes = call.call.count * bytes_of(call.call.dtype);
  }
  static std::unique_ptr<Transfer> transfer_of(const CallState& call) {
    auto op = std::make_unique<Transfer>();
    fill(*op, call);
    return op;
  }

  /// Whether the peer of a put or get is there.
  bool alive(const CallState& call) const {
    return blocks.poe->liveness(call.communicator->peers.endpoint(call.call.root)) == Poe::Liveness::kAlive;
  }

  /// Refers to the params of the call.
  static LaneLaunch launch_of(const CallState& call) {
    return {call.regions[static_cast<std::size_t>(Region::kSrc)], call.regions[static_cast<std::size_t>(Region::kDst)],
            call.call.count, call.params};
  }

  void set_deadline(CallState& call, std::chrono::microseconds timeout) const {
    call.submitted = blocks.poe->now();
    call.timeout = timeout.count() > 0 ? timeout : call.communicator->timeout;
    if (settings.deadlines == EngineSettings::Deadlines::kOff) {
      call.deadline = Clock::time_point::max();
      return;
    }
    call.warns = settings.deadlines == EngineSettings::Deadlines::kWarn;
    // A deadline beyond what the clock can hold is none.
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(Clock::time_point::max() - call.submitted);
    call.deadline = call.timeout >= left ? Clock::time_point::max() : call.submitted + call.timeout;
  }

  /// Whether calls that nobody waits for yet are being started one right after the other. Not true of many in a row:
  /// peers must be listened to.
  bool in_burst(Clock::time_point submitted) {
    const bool close = submitted - std::exchange(last_start, submitted) < kBurst;
    burst = close && burst + 1 < kMostOfBurst ? burst + 1 : 0;
    return burst != 0;
  }

  /// Lets other threads that wait, also on lanes, see what this one has changed.
  void wake_waiting() {
    ended.notify_all();
    if (shm::ShmPoe* shared = blocks.poe->shared_memory()) {
      shm::wake_if_parked(shared->segment()->endpoint(shared->self()));
    }
  }

  // The watch over blocking calls on the lanes. Their threads hold no lock when they come here.

  /// The call as the queue knows it; enters it if need be.
  CallState* watched(FastPath& fast_path, FastPath::Blocking& blocking) {
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

  /// Throws the result of a watched call that has ended.
  void raise_if_ended(FastPath::Blocking& blocking) {
    const CallResult result = calls.result(blocking.registered);
    if (!result.complete) return;
    calls.forget(blocking.registered);
    blocking.registered = 0;
    throw Error(result.code, result.message, result.still_written);
  }

  Clock::time_point look(FastPath& fast_path, FastPath::Blocking& blocking) override {
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

  void fault(FastPath& fast_path, FastPath::Blocking& blocking, const LaneFault& fault) override {
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

  void failed(FastPath& fast_path, const Error& error) override {
    const Turn turn(*this);
    Communicator* communicator = communicators.find(fast_path.number());
    if (communicator == nullptr || communicator->fast_path.get() != &fast_path) return;
    communicators.revoke(*communicator, ErrorCode::kRevoked, error.what(), true);
    // A function of the user, whose error it is, knows nothing of the call.
    if (error.code() == ErrorCode::kInvalidOp) {
      throw Error(error.code(), described(*communicator, fast_path.blocking()) + ": " + error.what());
    }
  }

  /// A collective call on the lanes, as the queue describes it.
  static std::string described(const Communicator& communicator, const FastPath::Blocking& blocking) {
    const Plan& plan = *blocking.plan;
    const Algorithm* algorithm = plan.must_be_direct ? plan.direct.algorithm : plan.plain.algorithm;
    return formatted("{} ({}, rank {}, sequence {}{})", name_of(plan.call.collective), communicator.title(),
                     communicator.rank, blocking.sequence,
                     algorithm == nullptr ? "" : std::string(", algorithm ") + algorithm->name);
  }

  void completed(FastPath&, FastPath::Blocking& blocking) override {
    const Turn turn(*this);
    calls.complete(blocking.registered);
    raise_or_forget(blocking);
  }

  void raise_or_forget(FastPath::Blocking& blocking) {
    const CallResult result = calls.result(blocking.registered);
    calls.forget(blocking.registered);
    blocking.registered = 0;
    if (result.code != ErrorCode::kOk) throw Error(result.code, result.message, result.still_written);
  }

  /// Waits until `done`, called under the lock, or until `at_most` has passed. One thread drives, and sleeps in the
  /// network with the lock released. A thread in the background makes way for others.
  enum class Manner : std::uint8_t { kForeground, kBackground };
  template <class Done>
  void wait_until(Done&& done, std::chrono::microseconds at_most, Manner manner);
  /// Whether a call in shared memory has ended, or does so while its peers are at it: what `wait_until` would find
  /// after it has looked at clocks and at everything else. Gives its result then.
  bool ends_soon(CallId id, CallResult& result);

  Blocks blocks;
  EngineSettings settings;
  std::uint32_t resets = 0;  ///< of the job that have been obeyed
  Counters counters;
  Tx tx;
  Rx rx;
  Rbm rbm;
  Dmp dmp;
  StreamPorts streams;
  CallQueue calls;
  Communicators communicators;

  std::mutex mutex;               ///< guards everything here
  std::condition_variable ended;  ///< a call has ended, or nobody drives
  bool driven = false;            ///< a waiting thread makes progress, or sleeps in the network for all
  bool driven_behind = false;     ///< that thread does so in the background
  std::uint32_t waiting = 0;      ///< threads in the foreground that wait
  std::uint32_t rounds = 0;
  std::uint32_t burst = 0;         ///< calls in a row
  Clock::time_point last_start{};  ///< when a call that nobody waits for was started
  Clock::time_point next_look{};
  Engine::Background background;  ///< see `set_background`
  CallCarrier* carrier = nullptr;
  Starter starter{*this};

  bool idle() const { return calls.idle() && !blocks.poe->has_output(); }
  /// Whether a short message has left by itself, without a call.
  bool send_at_once(const CallRequest& request) {
    if (!request.plain()) return false;
    {
      const Turn turn(*this);
      rx.drain();  // a revocation may have come
      Communicator* const communicator = communicators.find(request.communicator);
      if (communicator == nullptr || !try_short_send(blocks, *communicator, request)) return false;
      if (!blocks.poe->has_output()) return true;
    }
    leave_to_others();
    return true;
  }

  /// At the end of a wait, without the lock: the thread may not come back for long.
  void leave_to_others() {
    if (blocks.poe->sleeps_on_word()) return;  // there is no network
    Engine::Background begin;
    Clock::time_point due;
    {
      const std::lock_guard lock(mutex);
      due = blocks.poe->output_due();
      if (due == Clock::time_point::min()) {
        blocks.poe->poll();  // it may just have been held back
        due = blocks.poe->output_due();
      }
      if (due == Clock::time_point::max()) return;
      begin = background;
    }
    if (begin) begin(due);
  }
  /// The same where a call may have ended without a wait: nobody need come back for what is still to be sent.
  void leave_if_ended() {
    if (blocks.poe->sleeps_on_word()) return;  // there is no network
    {
      const std::lock_guard lock(mutex);
      if (!calls.idle()) return;
    }
    leave_to_others();
  }
};

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

template <class Done>
void NativeEngine::Impl::wait_until(Done&& done, std::chrono::microseconds at_most, Manner manner) {
  const bool behind = manner == Manner::kBackground;
  const auto begin = Clock::now();
  const auto longest = std::chrono::duration_cast<std::chrono::microseconds>(Clock::time_point::max() - begin);
  const auto end = at_most >= longest ? Clock::time_point::max() : begin + at_most;
  bool eager = true;  // to poll before it sleeps; not where a whole sleep has brought nothing
  Turn turn(*this);
  struct Present {
    explicit Present(std::uint32_t* count) : waiting(count) {
      if (waiting != nullptr) ++*waiting;
    }
    ~Present() {
      if (waiting != nullptr) --*waiting;
    }
    Present(const Present&) = delete;
    Present& operator=(const Present&) = delete;
    std::uint32_t* waiting;
  };
  {
    const Present present(behind ? nullptr : &waiting);
    while (!done()) {
      const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(end - Clock::now());
      if (rest.count() <= 0) {
        progress();  // so that even waits of no time bring the call to its end
        break;
      }
      if (behind ? driven || waiting != 0 : driven) {
        // Another thread drives: it is told of every end, and wakes one of the others when it leaves. One in the
        // background leaves at once when it is woken.
        if (shm::ShmPoe* shared = blocks.poe->shared_memory(); !behind && driven_behind && shared != nullptr) {
          shm::wake_if_parked(shared->segment()->endpoint(shared->self()));
        }
        const bool hooked = WaitHook::installed();
        if (hooked) {
          turn.unlock();
          WaitHook::call();
          turn.lock();
          if (done()) continue;
        }
        std::unique_lock<std::mutex> held(mutex, std::adopt_lock);
        ended.wait_for(held, std::min(rest, hooked ? WaitHook::kInterval : kLongestSleep));
        held.release();
        turn.tell();
        continue;
      }
      const std::uint32_t seen = blocks.poe->activity();
      if (progress()) {
        eager = true;
        turn.tell();
        continue;
      }
      const auto left = std::min(
          rest, std::chrono::duration_cast<std::chrono::microseconds>(calls.next_deadline() - blocks.poe->now()));
      driven = true;
      driven_behind = behind;
      turn.unlock();
      try {
        const auto longest_sleep = std::clamp(left, std::chrono::microseconds{1}, kLongestSleep);
        if (shm::ShmPoe* shared = blocks.poe->shared_memory()) {
          // What comes over lanes does not count as activity; only trying shows whether something has come.
          eager = shared->await(
              [&] {
                const std::lock_guard inner(mutex);
                return progress() || done() || (behind && waiting != 0);
              },
              [] { return true; }, Clock::now() + longest_sleep,
              behind ? shm::ShmPoe::Manner::kBackground : shm::ShmPoe::Manner::kForeground, eager);
        } else if (WaitHook::installed()) {
          WaitHook::call();
          blocks.poe->wait(seen, std::min(longest_sleep, WaitHook::kInterval));
        } else {
          blocks.poe->wait(seen, std::clamp(left, std::chrono::microseconds{1}, longest_sleep_of(*blocks.poe)));
        }
      } catch (...) {
        turn.lock();
        driven = driven_behind = false;
        throw;
      }
      turn.lock();
      driven = driven_behind = false;
      if (behind && waiting != 0) ended.notify_all();
      turn.tell();
    }
  }
  if (!driven) ended.notify_all();
}

Served Engine::serve(Bell& /*bell*/, bool /*watched*/, std::chrono::microseconds at_most) {
  return drive(at_most) ? Served::kIdle : Served::kBusy;
}

std::uint64_t Engine::run(const CallRequest& request) {
  const CallId id = submit_awaited(request);
  CallResult result = wait(id, Interrupt::kInterval);
  while (!result.complete) {
    if (Interrupt::current().pending()) revoke(request.communicator, kInterrupted);
    result = wait(id, Interrupt::kInterval);
  }
  forget(id);
  if (result.code != ErrorCode::kOk) throw Error(result.code, result.message, result.still_written);
  if (request.status != nullptr) *request.status = result.status;
  return result.received_bytes;
}

namespace {

[[noreturn]] void refuse_recovery() {
  throw Error(ErrorCode::kUnsupported,
              "this engine cannot go on after the end of a rank: agree, shrink and who has failed are of the native "
              "engine (UNISONO_PLATFORM=native)");
}

}  // namespace

CallId Engine::submit_at_once(const Request& /*request*/) { return 0; }

std::uint64_t Engine::write_stream(std::uint32_t /*port*/, std::span<const std::byte> /*bytes*/,
                                   std::chrono::microseconds /*at_most*/) {
  throw Error(ErrorCode::kUnsupported, "the streams of this engine are those of kernels on its device");
}

std::uint64_t Engine::read_stream(std::uint32_t port, std::span<std::byte> bytes, std::chrono::microseconds at_most) {
  return write_stream(port, bytes, at_most);
}

std::optional<CallResult> Engine::take(CallId /*id*/) { return std::nullopt; }

Agreed Engine::agree(std::uint32_t /*communicator*/, std::uint32_t /*purpose*/, std::uint64_t /*value*/,
                     std::uint64_t /*number*/, std::chrono::microseconds /*timeout*/) {
  refuse_recovery();
}

std::vector<bool> Engine::gone(std::uint32_t /*communicator*/) { refuse_recovery(); }

std::optional<MessageStatus> Engine::look_for(const CallRequest& request) {
  throw Error(ErrorCode::kUnsupported, "recv: " + wildcard_in_hardware(request));
}

std::shared_ptr<FastPath> Engine::fast_path(std::uint32_t /*communicator*/) const { return nullptr; }

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

Agreement NativeEngine::capabilities_of(const EngineSettings& settings) {
  check_settings(settings);
  Agreement capabilities;
  Capability capability = capability_of_engine();
  capability.lanes = settings.lanes;
  capability.log2_max_segment = static_cast<std::uint8_t>(31 - __builtin_clz(settings.segment_bytes));
  capabilities.capability = encode(capability)[0];
  capabilities.eager_limit = settings.eager_limit;
  capabilities.segment_bytes = settings.segment_bytes;
  capabilities.rx_buffer_count = settings.rx_buffer_count;
  capabilities.algorithm_hash = hash_of_algorithms();
  capabilities.aggregates = settings.aggregates;
  if (settings.rules) capabilities.tuning_hash = hash_of(*settings.rules);
  const CoreSet own = affinity_of(0);
  for (std::size_t word = 0; word < own.size(); ++word)
    capabilities.cores[word % capabilities.cores.size()] |= own[word];
  constexpr double kUnlimited = 1e9;
  capabilities.quota = static_cast<std::uint32_t>(std::clamp(cgroup_quota().cores, 1.0, kUnlimited));
  return capabilities;
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

template <class Step>
void NativeEngine::Impl::serve_kernel(std::chrono::microseconds at_most, Step&& step) {
  const auto begin = Clock::now();
  bool done = false;
  {
    const Turn turn(*this);
    done = step();
    // Calls that wait for these elements, or for the room, go on at once; and messages to the port may have come.
    if (!calls.idle() || (!done && streams.reading != 0)) progress();
    done = done || step();
    if (driven) wake_waiting();
  }
  while (!done) {
    const auto left = at_most - std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    if (left.count() <= 0) return;
    if (Interrupt::current().pending()) throw Error(ErrorCode::kRevoked, kInterrupted);
    wait_until([&] { return done = step(); }, std::min<std::chrono::microseconds>(left, Interrupt::kInterval),
               Manner::kForeground);
  }
  leave_to_others();
}

std::uint64_t NativeEngine::write_stream(std::uint32_t port, std::span<const std::byte> bytes,
                                         std::chrono::microseconds at_most) {
  check_port(port, "write to a stream");
  std::uint64_t done = 0;
  impl_->serve_kernel(at_most, [&] {
    StreamQueue& queue = impl_->streams.queue(StreamSide::kToEngine, port);
    const std::uint64_t piece = std::min<std::uint64_t>(queue.room(), bytes.size() - done);
    if (piece != 0) std::copy_n(bytes.data() + done, piece, queue.back(piece));
    queue.put(piece);
    done += piece;
    return done == bytes.size();
  });
  return done;
}

std::uint64_t NativeEngine::read_stream(std::uint32_t port, std::span<std::byte> bytes,
                                        std::chrono::microseconds at_most) {
  check_port(port, "read from a stream");
  std::uint64_t done = 0;
  std::optional<StreamPorts::Failure> failure;
  struct Reader {
    explicit Reader(Impl& of, std::uint32_t at) : engine(of), port(at) { count(1); }
    ~Reader() { count(-1); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    void count(int by) const {
      const std::lock_guard lock(engine.mutex);
      engine.streams.readers[port] += by;
      engine.streams.reading += by;
    }
    Impl& engine;
    std::uint32_t port;
  };
  const Reader reader(*impl_, port);
  impl_->serve_kernel(at_most, [&] {
    StreamQueue& queue = impl_->streams.queue(StreamSide::kToKernel, port);
    const std::uint64_t piece = std::min<std::uint64_t>(queue.here(), bytes.size() - done);
    if (piece != 0) std::copy_n(queue.front(), piece, bytes.data() + done);
    queue.taken(piece);
    done += piece;
    if (done == bytes.size()) return true;
    // What came before the failure is given first, and counted.
    if (done == 0) failure = impl_->streams.take_failure(port);
    return failure.has_value() || (done != 0 && impl_->streams.has_failure(port));
  });
  if (failure) {
    throw Error(failure->code, "stream port " + std::to_string(port) + " brings no more: " + failure->text);
  }
  return done;
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
  for (int round = 0; round < kRoundsAtOnce && engine.progress(); ++round) any = true;
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

bool NativeEngine::recovers() const {
  const std::lock_guard lock(impl_->mutex);
  return !impl_->settings.hardware_peers;
}

Agreed NativeEngine::agree(std::uint32_t number, std::uint32_t purpose, std::uint64_t value, std::uint64_t proposal,
                           std::chrono::microseconds timeout) {
  Impl& engine = *impl_;
  Turn turn(engine);
  if (engine.settings.hardware_peers) refuse_recovery();
  Communicator& communicator = engine.communicators.get(number);
  const auto limit = timeout.count() > 0 ? timeout : communicator.timeout;
  const Clock::time_point begin = engine.blocks.poe->now();
  engine.communicators.consensus(communicator).begin(purpose, value, proposal);
  try {
    for (;;) {
      const std::uint32_t seen = engine.blocks.poe->activity();
      engine.progress();
      if (engine.communicators.find(number) != &communicator) {
        throw Error(ErrorCode::kFreedCommunicator,
                    "communicator " + std::to_string(number) + " was freed by this rank during an agreement on it");
      }
      Consensus& consensus = *communicator.consensus;
      if (consensus.step()) {
        // What this rank said last may still wait for room.
        while (engine.tx.flush()) {
        }
        return consensus.take();
      }
      if (engine.blocks.poe->now() - begin >= limit) {
        std::string text = "agreement on communicator " + std::to_string(number) + " (rank " +
                           std::to_string(communicator.rank) + "): timed out after " +
                           std::to_string(limit.count() / 1000) + " ms";
        for (const std::uint32_t peer : consensus.awaited()) {
          const std::uint32_t endpoint = communicator.peers.endpoint(peer);
          text += "; rank " + std::to_string(peer) + ", " + engine.blocks.poe->describe(endpoint) + ", has not come";
          const std::string what = doings(*engine.blocks.poe, endpoint, number, communicator.epoch);
          if (!what.empty()) text += ": " + what;
        }
        throw Error(ErrorCode::kTimeout, text);
      }
      turn.tell();
      turn.unlock();
      try {
        // A function that is asked may use the library: no lock is held here.
        if (Interrupt::current().pending()) throw Error(ErrorCode::kRevoked, kInterrupted);
        // The end of a peer need wake nobody. Where there are many, somebody notices it soon enough.
        constexpr std::uint32_t kMostMilliseconds = 50;
        engine.blocks.poe->wait(seen,
                                std::chrono::milliseconds(1 + std::min(communicator.size / 20, kMostMilliseconds)));
      } catch (...) {
        turn.lock();
        throw;
      }
      turn.lock();
    }
  } catch (...) {
    if (engine.communicators.find(number) == &communicator) communicator.consensus->abandon();
    throw;
  }
}

std::vector<bool> NativeEngine::gone(std::uint32_t communicator) {
  const std::lock_guard lock(impl_->mutex);
  std::vector<bool> result;
  for (const std::uint32_t endpoint : impl_->communicators.get(communicator).peers.endpoints()) {
    result.push_back(impl_->blocks.poe->liveness(endpoint) != Poe::Liveness::kAlive);
  }
  return result;
}

}  // namespace unisono
