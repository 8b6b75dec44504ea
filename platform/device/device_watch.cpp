#include <algorithm>

#include "platform/device/device_calls.hpp"

namespace unisono {

namespace {

using std::chrono::nanoseconds;

/// Of the device's time: how long a waiting host leaves it alone while kernels run in its own process.
constexpr std::chrono::microseconds kKernelSlice{1};
/// Of this machine's time: how often a waiting host looks after the others.
constexpr std::chrono::milliseconds kLookInterval{20};
/// Of this machine's time: how long a call must have taken before its flight record says what it waits for.
constexpr std::chrono::milliseconds kRecordPatience{50};
/// Of the device's time: how long what a host has left behind in its device may take to arrive. A host that left in
/// good order has seen the end of its own calls, but others may still be passing on what it sent.
constexpr nanoseconds kAfterDeath{200'000};
constexpr nanoseconds kAfterLeaving{1'000'000};
constexpr std::uint64_t kLeastBandwidth = 1;  ///< bytes in a nanosecond, of a path that is not stuck

}  // namespace

void DeviceCalls::pass(microseconds at_most) {
  if (WaitHook::installed()) at_most = std::min<microseconds>(at_most, WaitHook::kInterval);
  // A kernel of this process has a word for the device, or wants one, in a moment; until the wait ends it cannot.
  if (!kernels.empty() && !device->kernels()) at_most = std::min(at_most, kKernelSlice);
  const WaitHook::Quiet quiet;  // the lock is held
  use([&] { waiting = !device->wait(at_most); });
}

void DeviceCalls::advance() {
  listen();
  mark_revoked();
  while (harvest() || look_for_kernels()) launch_all();
  launch_all();
  look();
}

void DeviceCalls::listen() {
  if (!hosts || !lost_because.empty()) return;
  std::vector<Hosts::Revocation> words;
  try {
    words = hosts->heard();
  } catch (const Error&) {
    hosts.reset();  // what some host has written there is no message; the devices have a network of their own
    return;
  }
  for (const Hosts::Revocation& word : words) {
    const auto found = groups.find(word.communicator);
    const ErrorCode code = tells_itself(word.code) ? word.code : ErrorCode::kRevoked;
    const std::string reason = "the rank at " + hosts->describe(word.endpoint) + " reported: " + word.reason;
    if (found != groups.end() && found->second->state.epoch == word.epoch) {
      revoke(*found->second, code, reason, false);
    } else if (word.communicator >= settled && freed.count(word.communicator) == 0) {
      revoked_early.emplace(std::pair{word.communicator, word.epoch}, std::pair{code, reason});
    }
  }
}

void DeviceCalls::look() {
  use([&] { broken_ways.note(device->broken(), options.nodes, device->node()); });
  if (!lost_because.empty()) return;
  look_for_broken();
  const nanoseconds now = device->now();
  std::vector<Work*> late;
  for (auto& [id, work] : works) {
    if (work->state != Work::State::kEnded && now >= end_of(*work)) late.push_back(work.get());
  }
  for (Work* work : late) {
    const std::string after = "timed out after " + in_words(work->timeout) + " of the device's time";
    if (work->call->kernel && work->state == Work::State::kRunning) {
      const std::string waits = work->call->kernel->waits();
      fail(*work, ErrorCode::kTimeout, after + ": " + (waits.empty() ? "the kernel has not ended" : waits));
      continue;
    }
    fail(*work, ErrorCode::kTimeout,
         work->state == Work::State::kQueued
             ? after + " before it began: what it follows, or calls that fill the device, have not ended"
             : after + ", and the device has not said so within " + in_words(options.margin) +
                   " more: it may be stuck, then a new job is needed" + flight.absent(*work->call));
  }
  tell_of_waits(false);
  if (!hosts) return;
  const auto wall = Clock::now();
  if (wall < next_look) return;
  next_look = wall + kLookInterval;
  for (auto& [number, work] : std::map<std::uint32_t, Work*>(running)) {
    if (work->state != Work::State::kEnded) look_for_gone(*work, now);
  }
}

void DeviceCalls::tell_of_waits(bool stands_still) {
  const auto now = Clock::now();
  if (!options.records || now < next_record) return;
  next_record = now + kRecordPatience;
  std::map<CallId, const Work*> slow;  // the first of a communicator is told
  for (const auto& [id, work] : works) {
    if (work->state != Work::State::kEnded && now - work->began >= kRecordPatience) slow.emplace(id, work.get());
  }
  for (const auto& [id, work] : slow) {
    flight.waits(*work->call, work->state == Work::State::kRunning, stands_still, work->began);
  }
}

void DeviceCalls::look_for_broken() {
  if (broken_ways.none()) return;
  std::vector<std::pair<Work*, std::uint32_t>> stuck;
  std::vector<Work*> to_switch;
  for (auto& [id, work] : works) {
    if (work->state == Work::State::kEnded) continue;
    const std::optional<std::uint32_t> above = work->group->switches.above();
    if (above && by_switches(*work->call) && broken_ways.leads_to(*above)) {
      to_switch.push_back(work.get());
      continue;
    }
    if (const auto rank = broken_ways.member_of(*work->call)) stuck.emplace_back(work.get(), *rank);
  }
  std::sort(to_switch.begin(), to_switch.end(), [](const Work* a, const Work* b) { return a->id < b->id; });
  for (Work* work : to_switch) {
    fail(*work, ErrorCode::kFramesLost, broken_ways.words_of(*work->group->switches.above()));
  }
  std::sort(stuck.begin(), stuck.end(), [](const auto& a, const auto& b) { return a.first->id < b.first->id; });
  for (const auto& [work, rank] : stuck) {
    const std::uint32_t endpoint = work->group->state.peers.endpoint(rank);
    const std::string peer = hosts ? hosts->describe(endpoint) : formatted("endpoint {}", endpoint);
    fail(*work, ErrorCode::kFramesLost, broken_ways.words(*work->call, rank, peer));
  }
}

nanoseconds DeviceCalls::end_of(const Work& work) const {
  constexpr nanoseconds kNever = nanoseconds::max();
  if (work.timeout >= std::chrono::hours(24 * 365)) return kNever;
  return work.submitted + work.timeout + (work.state == Work::State::kQueued ? microseconds{0} : options.margin);
}

void DeviceCalls::look_for_gone(Work& work, nanoseconds now) {
  const bool one_sided =
      work.call->call.collective == Collective::kPut || work.call->call.collective == Collective::kGet;
  if (!work.collective() && !work.point_to_point() && !one_sided) return;
  const cclo::Communicator& state = work.group->state;
  for (std::uint32_t rank = 0; rank < state.size; ++rank) {
    if (rank == state.rank || ((work.point_to_point() || one_sided) && rank != work.call->call.root)) continue;
    const std::uint32_t endpoint = state.peers.endpoint(rank);
    const Poe::Liveness liveness = hosts->liveness(endpoint);
    if (liveness == Poe::Liveness::kAlive) continue;
    const nanoseconds since = std::max(gone.emplace(endpoint, now).first->second, work.submitted);
    const std::uint64_t bytes = (work.region(Region::kSrc).bytes + work.region(Region::kDst).bytes) * state.size;
    const nanoseconds patience =
        liveness == Poe::Liveness::kDead ? kAfterDeath : kAfterLeaving + nanoseconds(bytes / kLeastBandwidth);
    if (now - since < patience) continue;
    fail(work, ErrorCode::kPeerDead,
         formatted("rank {}, {}{}, and the call has not ended since", rank, hosts->describe(endpoint),
                   liveness == Poe::Liveness::kDead ? ", has died" : ", has left the job"));
    return;
  }
}

}  // namespace unisono
