// The inside of the native engine: its blocks, and the lock that guards them.
//
// engine.cpp has what is asked of it, native_waits.cpp how threads wait, native_watch.cpp what blocking calls on the
// lanes leave to it, native_streams.cpp the ports of kernels, native_carrier.cpp calls that switches carry, and
// native_agree.cpp agreements among those that are left.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/call_queue.hpp"
#include "engine/communicators.hpp"
#include "engine/counters.hpp"
#include "engine/dmp.hpp"
#include "engine/engine.hpp"
#include "engine/fast_path.hpp"
#include "engine/rbm.hpp"
#include "engine/rx.hpp"
#include "engine/short_send.hpp"
#include "engine/stream_ports.hpp"
#include "engine/tx.hpp"

namespace unisono {

namespace cclo {

inline constexpr const char* kInterrupted = "the call was interrupted by its caller";

/// Throws Error(kUnsupported): this engine cannot go on after the end of a rank.
[[noreturn]] void refuse_recovery();

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

}  // namespace cclo

class NativeEngine::Impl final : public cclo::FastPath::Watch {
 public:
  using Clock = cclo::Clock;

  /// A busy engine looks at the clock once in so many rounds.
  static constexpr std::uint32_t kRoundsPerLook = 256;
  /// Rounds of progress that one look of a waiting call makes at most.
  static constexpr int kRoundsAtOnce = 8;
  /// How often peers' liveness and deadlines are examined while idle, at most.
  static constexpr std::chrono::microseconds kLookInterval{2'000};
  /// Calls that are started with less time than this between them are started together, up to so many of them.
  static constexpr std::chrono::microseconds kBurst{20};
  static constexpr std::uint32_t kMostOfBurst = 16;

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
  EngineSettings settings_in_force() const;

  /// Gives up all communicators if a tool has asked for that.
  void obey() {
    const JobOrders* const orders = blocks.poe->orders();
    if (orders == nullptr || orders->resets.load(std::memory_order_relaxed) == resets) return;
    resets = orders->resets.load(std::memory_order_relaxed);
    communicators.for_each([&](cclo::Communicator& communicator) {
      communicators.revoke(communicator, ErrorCode::kRevoked, "the job was reset by its user", true);
    });
  }

  /// One round of everything. Returns whether anything was done.
  bool progress() {
    bool any = blocks.poe->poll();
    any = rx.drain() || any;
    any = tx.flush() || any;
    any = calls.progress() || any;
    communicators.for_each([&](cclo::Communicator& c) {
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
        if (rx.drain(cclo::Rx::Look::kInAnyCase)) {
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
  cclo::CallState& admitted(const CallRequest& request);

  /// Begins to receive what peers have sent to ports that kernels wait at, and that no call uses. Returns whether there
  /// was any.
  bool receive_for_kernels();
  /// Sends what moves of programs have made for stream ports of peers.
  bool send_to_ports();

  /// Goes on with a kernel at a port until `step`, under the lock, says that it has done, or `at_most` has passed.
  template <class Step>
  void serve_kernel(std::chrono::microseconds at_most, Step&& step);

  /// Calls of the carrier, as if somebody had submitted them.
  class Starter final : public CallStarter {
   public:
    explicit Starter(Impl& engine) : engine_(engine) {}
    void start(const CallRequest& request, Listener listener) override;
    std::optional<std::uint32_t> look_for(std::uint32_t number, std::uint32_t tag) override;
    void free(std::uint32_t number) override { engine_.communicators.free(number); }

   private:
    Impl& engine_;
  };

  /// Has the carrier take a call that is about to be submitted, if it wants it.
  void offer_to_carrier(const CallRequest& request, cclo::CallState& call);

  static bool is_transfer(const cclo::CallState& call) {
    return call.communicator->fast_path != nullptr && call.space == cclo::CallState::Space::kPointToPoint &&
           !call.probe;
  }
  static void fill(cclo::Transfer& op, const cclo::CallState& call) {
    op.sends = call.call.collective == Collective::kSend;
    op.peer = call.call.root;
    op.tag = call.tag;
    op.wanted = call.wanted;
    op.dtype = call.call.dtype;
    op.data = call.regions[static_cast<std::size_t>(op.sends ? Region::kSrc : Region::kDst)].data;
    op.bytes = call.call.count * bytes_of(call.call.dtype);
  }
  static std::unique_ptr<cclo::Transfer> transfer_of(const cclo::CallState& call) {
    auto op = std::make_unique<cclo::Transfer>();
    fill(*op, call);
    return op;
  }

  /// Whether the peer of a put or get is there.
  bool alive(const cclo::CallState& call) const {
    return blocks.poe->liveness(call.communicator->peers.endpoint(call.call.root)) == Poe::Liveness::kAlive;
  }

  /// Refers to the params of the call.
  static cclo::LaneLaunch launch_of(const cclo::CallState& call) {
    return {call.regions[static_cast<std::size_t>(Region::kSrc)], call.regions[static_cast<std::size_t>(Region::kDst)],
            call.call.count, call.params};
  }

  void set_deadline(cclo::CallState& call, std::chrono::microseconds timeout) const {
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
  cclo::CallState* watched(cclo::FastPath& fast_path, cclo::FastPath::Blocking& blocking);
  /// Throws the result of a watched call that has ended.
  void raise_if_ended(cclo::FastPath::Blocking& blocking);

  Clock::time_point look(cclo::FastPath& fast_path, cclo::FastPath::Blocking& blocking) override;
  void fault(cclo::FastPath& fast_path, cclo::FastPath::Blocking& blocking, const cclo::LaneFault& fault) override;
  void failed(cclo::FastPath& fast_path, const Error& error) override;
  void completed(cclo::FastPath&, cclo::FastPath::Blocking& blocking) override;
  void raise_or_forget(cclo::FastPath::Blocking& blocking);

  /// Waits until `done`, called under the lock, or until `at_most` has passed. One thread drives, and sleeps in the
  /// network with the lock released. A thread in the background makes way for others.
  enum class Manner : std::uint8_t { kForeground, kBackground };
  template <class Done>
  void wait_until(Done&& done, std::chrono::microseconds at_most, Manner manner);
  /// Whether a call in shared memory has ended, or does so while its peers are at it: what `wait_until` would find
  /// after it has looked at clocks and at everything else. Gives its result then.
  bool ends_soon(CallId id, CallResult& result);

  cclo::Blocks blocks;
  EngineSettings settings;
  std::uint32_t resets = 0;  ///< of the job that have been obeyed
  cclo::Counters counters;
  cclo::Tx tx;
  cclo::Rx rx;
  cclo::Rbm rbm;
  cclo::Dmp dmp;
  cclo::StreamPorts streams;
  cclo::CallQueue calls;
  cclo::Communicators communicators;

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
      const cclo::Turn turn(*this);
      rx.drain();  // a revocation may have come
      cclo::Communicator* const communicator = communicators.find(request.communicator);
      if (communicator == nullptr || !cclo::try_short_send(blocks, *communicator, request)) return false;
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

}  // namespace unisono
