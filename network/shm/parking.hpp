// How an endpoint waits, and how its peers end the wait.
//
// A sender publishes (a release store) and then looks whether the receiver sleeps; a receiver says that
// it is about to sleep and then looks whether something was published. Each stores, then loads what the
// other stores, so one of them must not let its load overtake its store: that takes a full barrier,
// which costs a sender tens of nanoseconds in every message. Here the receiver pays for both:
// membarrier(2) makes every core that runs a member of the job execute one, and the sender only keeps
// its compiler from reordering. model/parking.pml is the protocol, checked with spin.
//
// membarrier may be refused (old kernels, seccomp). So a sender leaves its barrier out only where the
// receiver's word permits it, and fresh memory does not: the permission is given, in the words of all
// endpoints at once, by the member that completes the job, if all members can issue the barrier and are
// subject to it. Until then, and for good if one of them cannot, every sender issues a barrier of its
// own. Nobody can join later, for every endpoint is taken once; so the permission is never given wrongly.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "network/shm/doorbell.hpp"
#include "network/shm/segment.hpp"

namespace unisono::shm {

/// Bits of `EndpointBlock::parked`.
enum ParkedBit : std::uint32_t {
  /// The endpoint sleeps or is about to; the sender that clears the bit wakes it. Set by the endpoint.
  kParked = 1,
  /// Before it sleeps the endpoint orders the memory of all senders, so these need no barrier. Set when the job is
  /// complete, cleared only by an endpoint whose membarrier fails afterwards.
  kOneSided = 2,
  /// Beside kParked: it sleeps on descriptors, so the sender that clears both bits rings its Doorbell.
  kBell = 4,
};

/// The part of `wake_if_parked` that is seldom needed.
void wake_or_order(EndpointBlock& peer, std::uint32_t word);

/// Sender, after it has published with at least a release store: wakes the endpoint if it sleeps. One plain
/// load of a line that is only written when the endpoint parks; without the permission `kOneSided`, also a
/// full barrier. One call serves any number of earlier stores of this thread. Never blocks; any thread.
inline void wake_if_parked(EndpointBlock& peer) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const std::uint32_t word = peer.parked.load(std::memory_order_relaxed);
  if (word != kOneSided) [[unlikely]] {
    wake_or_order(peer, word);
  }
}

/// Tells the processor that this is a loop of polls.
inline void pause_core() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The waiting of one endpoint. One thread waits at a time; others may wake it meanwhile.
class Parking {
 public:
  using Clock = std::chrono::steady_clock;

  struct Policy {
    /// How long to poll (with a core for every rank) or to yield (without) before sleeping; 0 sleeps at
    /// once. A sleep and its wake-up cost tens of microseconds, on both sides.
    std::chrono::microseconds patience{1000};
    /// Longest single sleep. Nothing that a live peer publishes needs it: it is for `tick`, that is, for peers
    /// that die, also between publishing and waking. Their death is noticed within this and one `tick`.
    std::chrono::milliseconds look{250};
  };

  /// What has happened in waits, for tests and people.
  struct Counters {
    std::uint64_t sleeps = 0;   ///< times the kernel was asked to put the thread to sleep
    std::uint64_t looks = 0;    ///< of these, ended by `Policy::look`
    std::uint64_t rescues = 0;  ///< of these, found ready then: a peer died before it could wake, or a defect
    std::uint64_t moves = 0;    ///< times the thread left a core that another endpoint was on
  };

  /// Over endpoint `self` of a segment that outlives this object.
  Parking(const Segment& segment, std::uint32_t self);
  Parking(const Parking&) = delete;
  Parking& operator=(const Parking&) = delete;

  /// Once, when the endpoint joins: makes this process subject to its peers' barriers, and gives the permission
  /// to all if it is the last.
  void join();

  /// From now on sleeps end, too, when `descriptor` polls as readable, which then stays the caller's for as long as
  /// this lives. Before anybody waits. Throws Error(kBootstrap).
  void listen(int descriptor);

  /// Others that are not of this segment need the cores as well, and the network may have to wake them: from now on
  /// waits yield a few times, whatever the segment's endpoints are, and then sleep.
  void make_way() { makes_way_ = true; }

  void set_policy(const Policy& policy) { policy_ = policy; }
  const Counters& counters() const { return counters_; }

  /// Whether senders to this endpoint may leave out their barrier.
  bool one_sided() const { return (block_.parked.load(std::memory_order_relaxed) & kOneSided) != 0; }

  /// Whether there are more endpoints than can have a core each. Asks the system again as long as endpoints join;
  /// threads that bind themselves to cores later are not noticed. For any thread, also while another one waits.
  bool oversubscribed();

  /// For who has polled for a while and is not oversubscribed. There is a core for every rank, but the scheduler may
  /// have two of them on one: then the one that polls keeps the other from doing what it waits for. Moves this thread
  /// to another core of its affinity, which stays as it is, or lets the other run.
  void leave_shared_core(Clock::time_point now);

  /// Waits until `ready()` is true, `deadline` has passed, or `tick()` is false; returns what `ready()` was last.
  ///
  /// `ready` reads, with acquire loads, what senders publish before they call `wake_if_parked`; it is called
  /// at once, after every poll, and again when the intention to sleep is visible to all senders. `tick` is for
  /// what nobody publishes (liveness of peers): it is called every `kPolls` polls or `kYields` yields, and
  /// after every sleep, thus at least every `Policy::look`. Both may throw. The first batch of polls reads no
  /// clock, takes no lock and makes no system call if there is a core for every rank. Not `eager`, it sleeps at once:
  /// for a caller that must not take time from others.
  template <class Ready, class Tick>
  bool wait(Ready&& ready, Tick&& tick, Clock::time_point deadline, bool eager = true) {
    if (ready()) return true;
    const bool polls = eager && policy_.patience.count() > 0;
    bool poll = polls;
    for (;;) {
      if (poll) {
        switch (poll_or_yield(ready, tick, deadline)) {
          case Polled::kReady:
            return true;
          case Polled::kOver:
            return ready();
          case Polled::kNothing:
            break;
        }
      }
      Slept slept;
      {
        const Intention intention(*this);
        if (ready()) return true;
        slept = sleep(deadline, intention);
      }
      if (ready()) {
        counters_.rescues += slept == Slept::kLook;
        return true;
      }
      if (Clock::now() >= deadline || !tick()) return ready();
      // Where one message came there may soon be another; where none has come for long, none will.
      poll = slept == Slept::kWoken && polls;
    }
  }

  /// For who sleeps on several words: the first part of a sleep, after which every sender that publishes changes the
  /// endpoint's word. Returns what it holds until then. `disarm` ends it.
  std::uint32_t arm() { return show_intention(0); }
  void disarm() { hide_intention(block_); }

  static constexpr int kPolls = 1024;  ///< polls between two looks at clock and `tick`
  static constexpr int kYields = 16;   ///< yields between them
  /// Yields before a sleep where others than the segment's endpoints need the cores.
  static constexpr int kYieldsToMany = 24;

 private:
  enum class Polled { kReady, kOver, kNothing };
  enum class Slept { kWoken, kLook };

  /// From its construction every sender that publishes will wake the endpoint, and what was published before can
  /// be read; until its destruction.
  class Intention {
   public:
    explicit Intention(Parking& parking)
        : block_(parking.block_), word_(parking.show_intention(parking.doorbell_ ? std::uint32_t{kBell} : 0)) {}
    ~Intention();
    Intention(const Intention&) = delete;
    Intention& operator=(const Intention&) = delete;
    /// What the word holds until somebody changes it.
    std::uint32_t word() const { return word_; }

   private:
    EndpointBlock& block_;
    std::uint32_t word_;
  };

  template <class Ready, class Tick>
  Polled poll_or_yield(Ready& ready, Tick& tick, Clock::time_point deadline) {
    const bool yields = oversubscribed();
    Clock::time_point end = Clock::time_point::max();
    for (;;) {
      for (int i = makes_way_ ? kYieldsToMany : yields ? kYields : kPolls; i > 0; --i) {
        if (yields) {
          sched_yield();
        } else {
          pause_core();
        }
        if (ready()) return Polled::kReady;
      }
      const Clock::time_point now = Clock::now();
      if (now >= deadline || !tick()) return Polled::kOver;
      // Each yield costs the others a look for datagrams, and one that sleeps is not behind those who want the core.
      if (makes_way_) return Polled::kNothing;
      if (!yields) leave_shared_core(now);
      if (end == Clock::time_point::max()) end = now + policy_.patience;
      if (now >= end) return Polled::kNothing;
    }
  }

  std::uint32_t show_intention(std::uint32_t bell);
  static void hide_intention(EndpointBlock& block);
  Slept sleep(Clock::time_point deadline, const Intention& intention);
  bool sleep_on_descriptors(Clock::duration at_most) const;
  void find_out_if_crowded();
  const Segment& segment_;
  EndpointBlock& block_;
  std::uint32_t size_;
  std::atomic<std::uint32_t> known_joined_{0};  ///< endpoints that had joined when `crowded_` was found
  bool makes_way_ = false;                      ///< see `make_way`
  std::atomic<bool> crowded_{true};             ///< more endpoints than cores, as far as known
  Clock::time_point may_move_{};                ///< not before: to another core
  Policy policy_;
  Counters counters_;
  std::atomic<std::uint64_t>& shown_sleeps_;  ///< for others to see
  std::unique_ptr<Doorbell> doorbell_;        ///< null: it sleeps on its word
  int descriptor_ = -1;                       ///< that it listens to
};

}  // namespace unisono::shm
