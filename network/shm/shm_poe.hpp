// The network of one machine: messages through a shared segment.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/process.hpp"
#include "network/poe.hpp"
#include "network/shm/arena.hpp"
#include "network/shm/kernel_copy.hpp"
#include "network/shm/parking.hpp"
#include "network/shm/ring_receiver.hpp"
#include "network/shm/ring_sender.hpp"
#include "network/shm/segment.hpp"
#include "network/wait_hook.hpp"

namespace unisono::shm {

/// One endpoint of a segment, in a process or thread of its own. Two rings lead to every endpoint,
/// itself included; nothing takes a lock. Messages sent before an endpoint left remain readable.
///
/// Any method but `self`, `size`, `max_payload` and `describe` throws Error(kWrongProcess) in a child
/// of fork; destruction there leaves the parent's endpoint alone.
class ShmPoe final : public Poe {
 public:
  /// Joins as endpoint `self`. Throws Error(kBootstrap) if it was taken before, Error(kInvalidArgument)
  /// if there is no such endpoint. Without `copies` nobody copies between this endpoint's memory and another's through
  /// the kernel.
  ShmPoe(std::shared_ptr<Segment> segment, std::uint32_t self, bool copies = true);
  /// Leaves in good order: peers see `Liveness::kLeft`.
  ~ShmPoe() override;

  std::uint32_t self() const override { return self_; }
  std::uint32_t size() const override { return segment_->size(); }
  std::uint32_t max_payload(Lane lane) const override { return segment_->geometry().max_payload[index_of(lane)]; }

  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override;
  void commit(std::uint32_t peer, Lane lane, const Header& header) override;
  bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) override;
  void release(std::uint32_t peer, Lane lane) override;

  std::uint32_t activity() const override;
  void wait(std::uint32_t seen, std::chrono::microseconds at_most) override;

  /// How this endpoint waits: for those who wait for more than `activity`.
  Parking& parking() { return parking_; }
  /// A wait in the foreground is the caller's own; one in the background is for others, polls nothing, and ends when a
  /// thread in the foreground wants to wait.
  enum class Manner : std::uint8_t { kForeground, kBackground };

  /// Waits as Parking::wait does. If another thread of this endpoint is waiting so, this one looks again every few
  /// microseconds until it has gone: only one can sleep on the endpoint's word. `eager`: see there.
  template <class Ready, class Tick>
  bool await(Ready&& ready, Tick&& tick, Parking::Clock::time_point deadline, Manner manner = Manner::kForeground,
             bool eager = true) {
    if (ready()) return true;
    if (manner == Manner::kBackground) return await_behind(ready, tick, deadline);
    if (WaitHook::installed()) [[unlikely]]
      return await_hooked(ready, tick, deadline, eager);
    if (!waiting_.exchange(true, std::memory_order_acquire)) {
      const Turn turn(waiting_);
      return parking_.wait(ready, tick, deadline, eager);
    }
    const Claim claim(claims_);
    wake_if_parked(*block_);
    while (!ready()) {
      if (Parking::Clock::now() >= deadline || !tick()) return ready();
      if (!waiting_.exchange(true, std::memory_order_acquire)) {
        const Turn turn(waiting_);
        return parking_.wait(ready, tick, deadline, eager);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return true;
  }

  /// For a thread that sleeps for several endpoints at once, and so cannot `await`. From here on, and until `disarm`, a
  /// sender that publishes changes the endpoint's word, which held `word` before; what was published earlier can be
  /// read. False, and disarmed, if a thread in the foreground waits or wants to: such a one also changes the word.
  /// Armed again, it gives the word of now. One thread at a time.
  bool arm(std::uint32_t& word) {
    const auto claimed = [&] { return claims_.load(std::memory_order_seq_cst) != 0; };
    if (!armed() && (claimed() || waiting_.exchange(true, std::memory_order_acquire))) return false;
    armed_.store(true, std::memory_order_relaxed);
    word = parking_.arm();
    if (!claimed()) return true;
    disarm();
    return false;
  }
  void disarm() {
    if (!armed()) return;
    parking_.disarm();
    armed_.store(false, std::memory_order_relaxed);
    waiting_.store(false, std::memory_order_release);
  }
  bool armed() const { return armed_.load(std::memory_order_relaxed); }

  Liveness liveness(std::uint32_t peer) override;
  std::string describe(std::uint32_t peer) const override;
  std::string condition(std::uint32_t peer) const override;
  CommunicatorRecord* records(std::uint32_t endpoint) const override { return segment_->records(endpoint); }
  NativeCounters* counters(std::uint32_t endpoint) const override { return &segment_->counters(endpoint); }
  const JobOrders* orders() const override { return &segment_->orders(); }

  ShmPoe* shared_memory() override { return this; }
  std::optional<std::uint32_t> in_shared_memory(std::uint32_t endpoint) const override { return endpoint; }
  const char* way_to(std::uint32_t /*peer*/) const override { return "shm"; }
  const std::shared_ptr<Segment>& segment() const { return segment_; }
  /// This endpoint's arena; also usable after the endpoint has left.
  const std::shared_ptr<Arena>& arena() const { return arena_; }

  /// Copies between ordinary memory of this endpoint and of its peers.
  KernelCopy& kernel_copy() { return kernel_copy_; }

  /// Whether there are more endpoints than usable cores, so that threads that wait should make way.
  bool crowded() { return parking_.oversubscribed(); }
  /// Whether all endpoints are threads of this process.
  bool one_process() const { return segment_->geometry().one_process != 0; }

  /// Begins to watch the processes of all peers that have joined. Without this a peer is watched from
  /// the first `liveness` of it; a job of processes calls it while all are known to run.
  void watch_peers();

 private:
  /// Holds the right to sleep on the endpoint's word.
  struct Turn {
    explicit Turn(std::atomic<bool>& of) : waiting(of) {}
    ~Turn() { waiting.store(false, std::memory_order_release); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    std::atomic<bool>& waiting;
  };
  /// Says, while it lives, that a thread in the foreground has found another one waiting.
  struct Claim {
    explicit Claim(std::atomic<std::uint32_t>& of) : claims(of) { claims.fetch_add(1, std::memory_order_seq_cst); }
    ~Claim() { claims.fetch_sub(1, std::memory_order_release); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    std::atomic<std::uint32_t>& claims;
  };

  template <class Ready, class Tick>
  bool await_behind(Ready& ready, Tick& tick, Parking::Clock::time_point deadline) {
    const auto claimed = [&] { return claims_.load(std::memory_order_seq_cst) != 0; };
    if (claimed() || waiting_.exchange(true, std::memory_order_acquire)) {
      // A thread that waits in the foreground makes progress for all, now and then.
      std::this_thread::sleep_for(std::chrono::microseconds(500));
      return ready();
    }
    const Turn turn(waiting_);
    return parking_.wait([&] { return ready() || claimed(); }, tick, deadline, false);
  }

  /// Calls the process's hook meanwhile, and so never sleeps on the endpoint's word, where no hook would be called.
  template <class Ready, class Tick>
  [[gnu::noinline]] bool await_hooked(Ready& ready, Tick& tick, Parking::Clock::time_point deadline, bool eager) {
    using Clock = Parking::Clock;
    constexpr int kPolls = 16;
    // A short wait ends before the hook is due: it reads no clock, and calls nothing but once in so many.
    constexpr int kFirstPolls = 96;
    constexpr int kShortWaits = 128;
    static constinit thread_local int short_waits = 0;
    const bool due = short_waits >= kShortWaits;
    if (eager && !due && !crowded_for_hook()) {
      ++short_waits;
      for (int i = kFirstPolls; i > 0; --i) {
        pause_core();
        if (ready()) return true;
      }
    }
    if (due) short_waits = 0;
    constexpr std::chrono::microseconds kBetweenCalls = WaitHook::kInterval / 2;
    constexpr std::chrono::microseconds kBetweenTicks{100};
    constexpr std::chrono::milliseconds kPatience{1};
    const Clock::time_point begin = Clock::now();
    // At once where many waits have called nothing; else one rank's hook would make the other's wait a long one.
    Clock::time_point called = due ? Clock::time_point{} : begin;
    Clock::time_point ticked = begin;
    while (WaitHook::installed()) {
      Clock::time_point now = Clock::now();
      if (now - called >= kBetweenCalls) {
        short_waits = 0;
        WaitHook::call();
        if (ready()) return true;
        called = now = Clock::now();
      }
      if (now >= deadline || (now - ticked >= kBetweenTicks && !tick())) return ready();
      if (now - ticked >= kBetweenTicks) ticked = now;
      if (!eager || now - begin >= kPatience) {
        WaitHook::nap();
      } else if (crowded_for_hook()) {
        sched_yield();
      } else {
        for (int i = kPolls; i > 0; --i) {
          pause_core();
          if (ready()) return true;
        }
        if (now - begin >= kBetweenTicks) leave_shared_core(now);
        continue;
      }
      if (ready()) return true;
    }
    return await(ready, tick, deadline, Manner::kForeground, eager);
  }
  /// Parking's, for any thread.
  void leave_shared_core(Parking::Clock::time_point now) {
    if (waiting_.exchange(true, std::memory_order_acquire)) return;
    const Turn turn(waiting_);
    parking_.leave_shared_core(now);
  }
  /// As `crowded`; true as well while another thread waits.
  bool crowded_for_hook() {
    if (waiting_.exchange(true, std::memory_order_acquire)) return true;
    const Turn turn(waiting_);
    return parking_.oversubscribed();
  }

  struct Link {
    RingSender send[kLanes];
    RingReceiver receive[kLanes];
    ProcessWatch watch;
  };

  Link& link(std::uint32_t peer);
  void check_process() const;
  void announce(std::uint32_t peer);
  [[noreturn]] void raise(const RingFault& fault, std::uint32_t peer, Lane lane) const;

  std::shared_ptr<Segment> segment_;
  std::shared_ptr<Arena> arena_;
  std::uint32_t self_;
  std::uint32_t pid_;
  std::uint32_t fork_generation_;
  Parking parking_;
  std::atomic<bool> waiting_{false};      ///< a thread sleeps, or may sleep, on the endpoint's word
  std::atomic<std::uint32_t> claims_{0};  ///< threads in the foreground that have found another one there
  std::atomic<bool> armed_{false};        ///< the one there is of `arm`
  EndpointBlock* block_;
  KernelCopy kernel_copy_;
  std::vector<Link> links_;
};

}  // namespace unisono::shm
