#include "network/shm/parking.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "core/cores.hpp"
#include "core/process.hpp"

namespace unisono::shm {
namespace {

/// Between two moves of a thread to another core; the scheduler may have reasons of its own.
constexpr std::chrono::milliseconds kBetweenMoves{10};

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0U, 0) == 0; }

/// Orders all earlier stores of this thread before all its later loads. The builtin, because the library's fence
/// is not known to the thread sanitizer, which then warns; correctness here rests on atomics it does know.
void full_barrier() { __sync_synchronize(); }

// The word is in a shared file mapping, so the futex must not be a private one.

/// False if the time has passed.
bool sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, Parking::Clock::duration at_most) {
  const auto nanoseconds = std::chrono::ceil<std::chrono::nanoseconds>(at_most).count();
  const timespec bound{static_cast<time_t>(nanoseconds / 1'000'000'000),
                       static_cast<long>(nanoseconds % 1'000'000'000)};
  return syscall(SYS_futex, &word, FUTEX_WAIT, seen, &bound, nullptr, 0) == 0 || errno != ETIMEDOUT;
}

/// Whether this process takes part in one-sided ordering. Both are needed: to be subject to the barriers of others, and
/// to be able to issue them. That it can is kept, for a process may join many jobs; a filter that forbids it later is
/// noticed by the wait that meets it.
bool can_order() {
  static std::atomic<std::uint32_t> known{0};  // one more than the generation of the process that could
  const std::uint32_t mark = fork_generation() + 1;
  if (known.load(std::memory_order_relaxed) == mark) return true;
  if (!membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) || !membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED))
    return false;
  known.store(mark, std::memory_order_relaxed);
  return true;
}

void wake(std::atomic<std::uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0); }

}  // namespace

// Why no wake-up is lost.
//
// The receiver (1) sets kParked, (2) orders, (3) looks for messages, (4) sleeps in the kernel if the word is still
// what it was at 1. The sender (a) publishes, (b) orders, (c) loads the word, (d) if kParked is set clears it, and
// if it was it who cleared it (e) wakes. If c sees the bit, e comes after the word changed: either the receiver
// sleeps by then and is woken, or the kernel finds the word changed and does not let it sleep. If c does not see
// it, c came before 1 (or after another sender's d, which then does the above). With a barrier at 2 and at b, a
// then comes before 3, and the message is seen. With kOneSided, b is none; but 2 includes a barrier on the
// sender's core, at some point of the sender's program. If that point is after a, the message is visible to 3. If
// it is before a, it is also before c, and c sees what the receiver did before 2, which is the bit.
//
// With kBell the receiver sleeps on its doorbell instead of the word. Who clears both bits rings, at e, and a ring
// lasts: it ends the sleep whether it comes before or after the sleep begins.
//
// The permission changes from absent to present once. A sender that sees it at c, and no kParked, read a word that
// is younger than the giving; if 1 is older than c it was undone or answered, and if it is younger, it saw the
// permission too (the word has one history) and ordered all. A sender that does not see it orders itself.

void wake_or_order(EndpointBlock& peer, std::uint32_t word) {
  if ((word & kOneSided) == 0) {
    full_barrier();
    word = peer.parked.load(std::memory_order_relaxed);
  }
  if ((word & kParked) == 0) return;
  word = peer.parked.fetch_and(~std::uint32_t{kParked | kBell}, std::memory_order_seq_cst);
  if ((word & kParked) == 0) return;
  if ((word & kBell) != 0) {
    Doorbell::ring(peer.doorbell.load(std::memory_order_relaxed));
  } else {
    wake(peer.parked);
  }
}

Parking::Parking(const Segment& segment, std::uint32_t self)
    : segment_(segment),
      block_(segment.endpoint(self)),
      size_(segment.size()),
      shown_sleeps_(segment.counters(self).words[static_cast<std::size_t>(NativeCounter::kSleeps)]) {}

void Parking::join() {
  block_.thread.store(static_cast<std::uint32_t>(gettid()), std::memory_order_relaxed);
  if (!can_order()) return;
  // Store, then look at all: of members that join at the same time, the last in the order of these sees all.
  block_.can_order_peers.store(1, std::memory_order_seq_cst);
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    if (segment_.endpoint(peer).can_order_peers.load(std::memory_order_seq_cst) == 0) return;
  }
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    segment_.endpoint(peer).parked.fetch_or(kOneSided, std::memory_order_seq_cst);
  }
}

void Parking::listen(int descriptor) {
  doorbell_ = std::make_unique<Doorbell>();
  descriptor_ = descriptor;
  block_.doorbell.store(doorbell_->number(), std::memory_order_release);
}

std::uint32_t Parking::show_intention(std::uint32_t bell) {
  const std::uint32_t bits = kParked | bell;
  const std::uint32_t word = block_.parked.fetch_or(bits, std::memory_order_seq_cst) | bits;
  full_barrier();
  if ((word & kOneSided) == 0 || membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) return word;
  // It worked when the job was formed, so a filter was installed since. From now on senders issue barriers. What one
  // of them stored before it saw this may still be on its way, and nobody will wake us for it: give it the time to
  // arrive before anything is looked at. A core's stores take less than a microsecond.
  block_.parked.fetch_and(~std::uint32_t{kOneSided}, std::memory_order_seq_cst);
  constexpr timespec kStoresArrive{0, 1'000'000};
  nanosleep(&kStoresArrive, nullptr);
  return bits;
}

Parking::Intention::~Intention() { hide_intention(block_); }

void Parking::hide_intention(EndpointBlock& block) {
  // Spares senders the system call; one that has already seen the bit finds it cleared, or wakes for nothing.
  if ((block.parked.load(std::memory_order_relaxed) & kParked) != 0) {
    block.parked.fetch_and(~std::uint32_t{kParked | kBell}, std::memory_order_relaxed);
  }
}

void Parking::leave_shared_core(Clock::time_point now) {
  const int core = sched_getcpu();
  if (core < 0) return;
  const std::uint32_t mine = static_cast<std::uint32_t>(core) + 1;
  if (block_.core.load(std::memory_order_relaxed) != mine) block_.core.store(mine, std::memory_order_relaxed);
  bool shared = false;
  for (std::uint32_t peer = 0; peer < size_ && !shared; ++peer) {
    const EndpointBlock& other = segment_.endpoint(peer);
    // One that sleeps takes no core; its waking chooses one anew.
    shared = &other != &block_ && other.core.load(std::memory_order_relaxed) == mine &&
             (other.parked.load(std::memory_order_relaxed) & kParked) == 0 &&
             other.state.load(std::memory_order_relaxed) == EndpointState::kJoined;
  }
  if (!shared) return;
  cpu_set_t allowed;
  if (now < may_move_ || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    sched_yield();
    return;
  }
  may_move_ = now + kBetweenMoves;
  cpu_set_t others = allowed;
  CPU_CLR(core, &others);
  cpu_set_t free = others;
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    const std::uint32_t taken = segment_.endpoint(peer).core.load(std::memory_order_relaxed);
    if (taken != 0 && taken <= CPU_SETSIZE) CPU_CLR(taken - 1, &free);
  }
  if (CPU_COUNT(&free) == 0) free = others;
  // The affinity is the user's: it is as it was when this returns, and the scheduler has moved the thread.
  if (CPU_COUNT(&free) == 0 || sched_setaffinity(0, sizeof free, &free) != 0) {
    sched_yield();
    return;
  }
  sched_setaffinity(0, sizeof allowed, &allowed);
  ++counters_.moves;
  if (const int moved = sched_getcpu(); moved >= 0) {
    block_.core.store(static_cast<std::uint32_t>(moved) + 1, std::memory_order_relaxed);
  }
}

Parking::Slept Parking::sleep(Clock::time_point deadline, const Intention& intention) {
  ++counters_.sleeps;
  shown_sleeps_.store(counters_.sleeps, std::memory_order_relaxed);
  const Clock::time_point now = Clock::now();
  if (now >= deadline) return Slept::kWoken;
  const bool until_deadline = deadline - now < policy_.look;
  const Clock::duration at_most = until_deadline ? deadline - now : Clock::duration(policy_.look);
  const bool woken = doorbell_ ? sleep_on_descriptors(at_most) : sleep_on(block_.parked, intention.word(), at_most);
  if (woken || until_deadline) return Slept::kWoken;
  ++counters_.looks;
  return Slept::kLook;
}

// A ring lasts until it is cleared, so it does not matter whether it comes before or after the sleep begins. It is
// cleared after every sleep: what was published before it is looked at then.
bool Parking::sleep_on_descriptors(Clock::duration at_most) const {
  const auto nanoseconds = std::chrono::ceil<std::chrono::nanoseconds>(at_most).count();
  const timespec bound{static_cast<time_t>(nanoseconds / 1'000'000'000),
                       static_cast<long>(nanoseconds % 1'000'000'000)};
  std::array<pollfd, 2> watched{{{doorbell_->descriptor(), POLLIN, 0}, {descriptor_, POLLIN, 0}}};
  const int ready = ppoll(watched.data(), watched.size(), &bound, nullptr);
  if (watched[0].revents != 0) doorbell_->clear();
  return ready != 0;
}

bool Parking::oversubscribed() {
  if (known_joined_.load(std::memory_order_acquire) != size_) [[unlikely]] {
    find_out_if_crowded();
  }
  return crowded_.load(std::memory_order_relaxed);
}

void Parking::find_out_if_crowded() {
  std::vector<std::uint32_t> threads;
  threads.reserve(size_);
  for (std::uint32_t peer = 0; peer < size_; ++peer) {
    const EndpointBlock& block = segment_.endpoint(peer);
    if (block.state.load(std::memory_order_acquire) == EndpointState::kAbsent) continue;
    threads.push_back(block.thread.load(std::memory_order_relaxed));
  }
  const auto joined = static_cast<std::uint32_t>(threads.size());
  if (joined == known_joined_.load(std::memory_order_relaxed)) return;
  // Where those will run who have yet to come is not known: as here, probably.
  threads.resize(size_, 0);
  crowded_.store(makes_way_ || seats(threads) < size_, std::memory_order_relaxed);
  known_joined_.store(joined, std::memory_order_release);  // who sees it sees what was found
}

}  // namespace unisono::shm
