#include "network/shm/shm_poe.hpp"

#include <unistd.h>

#include "core/error.hpp"

namespace unisono::shm {

namespace {

std::uint32_t checked(std::uint32_t self, const Segment& segment) {
  if (self < segment.size()) return self;
  throw Error(ErrorCode::kInvalidArgument, "endpoint " + std::to_string(self) + " of a job of " +
                                               std::to_string(segment.size()) + "; endpoints count from 0");
}

}  // namespace

ShmPoe::ShmPoe(std::shared_ptr<Segment> segment, std::uint32_t self, bool copies)
    : segment_(std::move(segment)),
      self_(self),
      pid_(static_cast<std::uint32_t>(getpid())),
      fork_generation_(fork_generation()),
      parking_(*segment_, checked(self, *segment_)),
      kernel_copy_(segment_, self, !copies) {
  const Geometry& geometry = segment_->geometry();
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
  // An endpoint is taken once, by the process that first writes its pid. Others read the pid and start time only
  // after the state, whose store publishes them.
  std::uint32_t nobody = 0;
  if (!block_->pid.compare_exchange_strong(nobody, pid_, std::memory_order_relaxed)) {
    throw Error(ErrorCode::kBootstrap, "endpoint " + std::to_string(self) + " was already taken, by process " +
                                           std::to_string(nobody) + "; every rank is joined once");
  }
  block_->start_time.store(own_start_time(), std::memory_order_relaxed);
  kernel_copy_.join();
  parking_.join();
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

// What was published before is visible to threads that read the count: this releases, activity() acquires.
void ShmPoe::announce(std::uint32_t peer) {
  EndpointBlock& block = segment_->endpoint(peer);
  block.activity.fetch_add(1, std::memory_order_seq_cst);
  wake_if_parked(block);
}

std::uint32_t ShmPoe::activity() const {
  check_process();
  return block_->activity.load(std::memory_order_seq_cst);
}

void ShmPoe::wait(std::uint32_t seen, std::chrono::microseconds at_most) {
  check_process();
  if (activity() != seen || at_most.count() <= 0) return;
  const auto now = Parking::Clock::now();
  const auto longest = std::chrono::duration_cast<std::chrono::microseconds>(Parking::Clock::time_point::max() - now);
  const auto deadline = at_most >= longest ? Parking::Clock::time_point::max() : now + at_most;
  // The caller looks at its peers when this returns, so nothing is to be done meanwhile.
  await([&] { return activity() != seen; }, [] { return true; }, deadline);
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

std::string ShmPoe::condition(std::uint32_t peer) const {
  if (peer >= size()) return {};
  const EndpointBlock& block = segment_->endpoint(peer);
  const EndpointState state = block.state.load(std::memory_order_acquire);
  if (state == EndpointState::kLeft) return "has left the job";
  if (state == EndpointState::kAbsent || one_process()) return {};
  const std::uint32_t pid = block.pid.load(std::memory_order_relaxed);
  const std::uint64_t start_time = block.start_time.load(std::memory_order_relaxed);
  // The system says nothing of a process that was waited for.
  return ProcessWatch(pid, start_time).running() ? condition_of(pid, start_time) : "has died";
}

}  // namespace unisono::shm
