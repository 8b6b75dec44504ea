#include "network/shm/shm_poe.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "core/error.hpp"
#include "network/shm/cores.hpp"

namespace unisono::shm {
namespace {

using Clock = std::chrono::steady_clock;

/// How long to poll before sleeping, with a core of one's own. A sleep and its wake-up cost tens of
/// microseconds, on both sides, so ranks that answer soon are awaited.
constexpr std::chrono::microseconds kPoll{1000};
/// How often to offer the core to others before sleeping, without.
constexpr int kYields = 4;
/// Longest single sleep. No wake-up is ever lost; should a kernel lose one, this bounds the harm.
constexpr std::chrono::microseconds kLongestSleep{50'000};

void pause_core() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The words are in a shared file mapping, so the futex must not be a private one.

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::microseconds at_most) {
  const timespec bound{static_cast<time_t>(at_most.count() / 1'000'000),
                       static_cast<long>(at_most.count() % 1'000'000 * 1'000)};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &bound, nullptr, 0);
}

void wake(std::atomic<std::uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0); }

}  // namespace

void wake_endpoint(EndpointBlock& block) {
  block.activity.fetch_add(1, std::memory_order_seq_cst);
  if (block.sleeping.exchange(0, std::memory_order_seq_cst) != 0) wake(block.activity);
}

ShmPoe::ShmPoe(std::shared_ptr<Segment> segment, std::uint32_t self)
    : segment_(std::move(segment)),
      self_(self),
      pid_(static_cast<std::uint32_t>(getpid())),
      fork_generation_(fork_generation()) {
  const Geometry& geometry = segment_->geometry();
  if (self >= geometry.endpoints) {
    throw Error(ErrorCode::kInvalidArgument, "endpoint " + std::to_string(self) + " of a job of " +
                                                 std::to_string(geometry.endpoints) + "; endpoints count from 0");
  }
  arena_ = std::make_shared<Arena>(segment_, self);
  links_.reserve(geometry.endpoints);
  for (std::uint32_t peer = 0; peer < geometry.endpoints; ++peer) {
    const auto sender = [&](Lane lane) {
      const std::size_t i = index_of(lane);
      SendCursors& cursors = segment_->send_cursors(self, peer);
      return RingSender(segment_->ring(self, peer, lane), geometry.ring_bytes[i], geometry.max_payload[i],
                        cursors.published[i], cursors.wants_space[i],
                        segment_->receive_cursors(self, peer).consumed[i]);
    };
    const auto receiver = [&](Lane lane) {
      const std::size_t i = index_of(lane);
      SendCursors& cursors = segment_->send_cursors(peer, self);
      return RingReceiver(segment_->ring(peer, self, lane), geometry.ring_bytes[i], geometry.max_payload[i],
                          cursors.published[i], cursors.wants_space[i],
                          segment_->receive_cursors(peer, self).consumed[i]);
    };
    links_.push_back(
        {{sender(Lane::kData), sender(Lane::kControl)}, {receiver(Lane::kData), receiver(Lane::kControl)}, {}});
  }
  block_ = &segment_->endpoint(self);
  // An endpoint is taken once, by whoever first writes its pid. Others read the pid and start time only
  // after the state, whose store publishes them.
  std::uint32_t nobody = 0;
  if (!block_->pid.compare_exchange_strong(nobody, pid_, std::memory_order_relaxed)) {
    throw Error(ErrorCode::kBootstrap, "endpoint " + std::to_string(self) + " was already taken, by process " +
                                           std::to_string(nobody) + "; every rank is joined once");
  }
  block_->start_time.store(start_time_of(pid_), std::memory_order_relaxed);
  block_->state.store(EndpointState::kJoined, std::memory_order_release);
}

ShmPoe::~ShmPoe() {
  if (fork_generation() != fork_generation_) return;
  block_->state.store(EndpointState::kLeft, std::memory_order_release);
  for (std::uint32_t peer = 0; peer < size(); ++peer) {
    if (peer != self_ && segment_->endpoint(peer).state.load(std::memory_order_relaxed) == EndpointState::kJoined) {
      announce(peer);
    }
  }
}

void ShmPoe::check_process() const {
  if (fork_generation() != fork_generation_) {
    throw Error(ErrorCode::kWrongProcess, "endpoint " + std::to_string(self_) + " belongs to process " +
                                              std::to_string(pid_) + " and was used in process " +
                                              std::to_string(getpid()) + ", a child of fork");
  }
}

ShmPoe::Link& ShmPoe::link(std::uint32_t peer) {
  check_process();
  if (peer >= links_.size()) {
    throw Error(ErrorCode::kInternal,
                "peer " + std::to_string(peer) + " in a job of " + std::to_string(links_.size()) + " endpoints");
  }
  return links_[peer];
}

void ShmPoe::raise(const RingFault& fault, std::uint32_t peer, Lane lane) const {
  throw Error(ErrorCode::kCorruptMessage, "the shared memory between " + describe(self_) + " and its peer " +
                                              describe(peer) + " is corrupt on the " + name_of(lane) +
                                              " lane: " + fault.text);
}

std::byte* ShmPoe::reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) {
  Link& pair = link(peer);
  try {
    return pair.send[index_of(lane)].reserve(bytes);
  } catch (const RingFault& fault) {
    raise(fault, peer, lane);
  }
}

void ShmPoe::commit(std::uint32_t peer, Lane lane, const Header& header) {
  link(peer).send[index_of(lane)].commit(header);
  announce(peer);
}

bool ShmPoe::peek(std::uint32_t peer, Lane lane, Incoming& incoming) {
  Link& pair = link(peer);
  try {
    return pair.receive[index_of(lane)].peek(incoming);
  } catch (const RingFault& fault) {
    raise(fault, peer, lane);
  }
}

void ShmPoe::release(std::uint32_t peer, Lane lane) {
  if (link(peer).receive[index_of(lane)].release()) announce(peer);
}

// Why no wake-up is lost. The announcer (a) counts up, then (b) loads `sleeping`; the sleeper (c)
// stores `sleeping`, then (d) loads the count. All four are sequentially consistent, so in their
// single order either a comes before d, and the sleeper does not sleep; or d before a, hence c before
// b, and the announcer wakes. A wake-up that comes after d but before the kernel has queued the
// sleeper finds nobody, but then the kernel's own comparison, made under the lock that the wake-up
// takes, sees the new count. Several announcers: the one that clears the flag wakes, the others need
// not; should the flag of a later sleep be cleared by a late announcer, the sleeper wakes for nothing,
// sees the count unchanged, and raises the flag again.
//
// What was published before a is visible to whoever reads a's count: a releases, activity() acquires.

void ShmPoe::announce(std::uint32_t peer) {
  EndpointBlock& block = segment_->endpoint(peer);
  block.activity.fetch_add(1, std::memory_order_seq_cst);
  if (block.sleeping.load(std::memory_order_seq_cst) != 0 &&
      block.sleeping.exchange(0, std::memory_order_seq_cst) != 0) {
    wake(block.activity);
  }
}

std::uint32_t ShmPoe::activity() const {
  check_process();
  return block_->activity.load(std::memory_order_seq_cst);
}

void ShmPoe::wait(std::uint32_t seen, std::chrono::microseconds at_most) {
  const auto changed = [&] { return activity() != seen; };
  if (changed() || at_most.count() <= 0) return;
  const Clock::time_point begin = Clock::now();
  const Clock::time_point deadline = begin + at_most;
  if (oversubscribed()) {
    for (int i = 0; i < kYields; ++i) {
      sched_yield();
      if (changed()) return;
    }
  } else {
    const Clock::time_point end_of_poll = begin + std::min(kPoll, at_most);
    do {
      for (int i = 0; i < 32; ++i) {
        pause_core();
        if (changed()) return;
      }
    } while (Clock::now() < end_of_poll);
  }
  for (Clock::time_point now = Clock::now(); now < deadline; now = Clock::now()) {
    block_->sleeping.store(1, std::memory_order_seq_cst);
    if (changed()) break;
    const auto left = std::chrono::ceil<std::chrono::microseconds>(deadline - now);
    sleep_on(block_->activity, seen, std::min(left, kLongestSleep));
    if (changed()) break;
  }
  // Spares announcers the system call; one that has already seen the flag wakes nobody.
  block_->sleeping.store(0, std::memory_order_relaxed);
}

bool ShmPoe::oversubscribed() {
  if (known_joined_ == size()) return crowded_;
  std::uint32_t joined = 0;
  std::vector<std::uint32_t> processes;
  for (std::uint32_t peer = 0; peer < size(); ++peer) {
    const EndpointBlock& block = segment_->endpoint(peer);
    if (block.state.load(std::memory_order_acquire) == EndpointState::kAbsent) continue;
    ++joined;
    const std::uint32_t pid = block.pid.load(std::memory_order_relaxed);
    if (pid != pid_) processes.push_back(pid);
  }
  if (joined != known_joined_) {
    known_joined_ = joined;
    crowded_ = size() > usable_cores(processes);
  }
  return crowded_;
}

void ShmPoe::watch_peers() {
  for (std::uint32_t peer = 0; peer < size(); ++peer) {
    Link& pair = link(peer);
    const EndpointBlock& block = segment_->endpoint(peer);
    if (pair.watch.watching() || block.state.load(std::memory_order_acquire) == EndpointState::kAbsent) continue;
    const std::uint32_t pid = block.pid.load(std::memory_order_relaxed);
    if (pid != pid_) pair.watch = ProcessWatch(pid, block.start_time.load(std::memory_order_relaxed));
  }
}

Poe::Liveness ShmPoe::liveness(std::uint32_t peer) {
  Link& pair = link(peer);
  const EndpointBlock& block = segment_->endpoint(peer);
  const auto state = [&] { return block.state.load(std::memory_order_acquire); };
  switch (state()) {
    case EndpointState::kAbsent:
      return Liveness::kAlive;
    case EndpointState::kJoined:
      break;
    default:
      return Liveness::kLeft;
  }
  const std::uint32_t pid = block.pid.load(std::memory_order_relaxed);
  if (pid == pid_ && !pair.watch.watching()) return Liveness::kAlive;
  if (!pair.watch.watching()) pair.watch = ProcessWatch(pid, block.start_time.load(std::memory_order_relaxed));
  if (pair.watch.running()) return Liveness::kAlive;
  // It may have left in good order and ended between the two looks.
  return state() == EndpointState::kLeft ? Liveness::kLeft : Liveness::kDead;
}

std::string ShmPoe::describe(std::uint32_t peer) const {
  std::string text = "endpoint " + std::to_string(peer);
  if (peer >= size()) return text + " (none such)";
  const std::uint32_t pid = segment_->endpoint(peer).pid.load(std::memory_order_relaxed);
  return text + (pid == 0 ? " (not joined)" : " (pid " + std::to_string(pid) + ")");
}

}  // namespace unisono::shm
