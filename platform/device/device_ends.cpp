#include <algorithm>

#include "engine/call_queue.hpp"
#include "platform/device/device_calls.hpp"
#include "platform/device/lost.hpp"
#include "platform/device/registers.hpp"

namespace unisono {

CallResult result_of(const CallResult* known, CallId id, CallId last) {
  if (known != nullptr) return *known;
  if (id == 0 || id > last) {
    throw Error(ErrorCode::kInvalidArgument, formatted("no call of this endpoint has number {}", id));
  }
  return {true, ErrorCode::kOk, {}, 0};  // forgotten
}

std::string in_words(std::chrono::microseconds time) {
  return time.count() % 1000 == 0 ? formatted("{} ms", time.count() / 1000) : formatted("{} us", time.count());
}

void DeviceCalls::lose(const std::string& why) {
  if (!lost_because.empty()) return;
  lost_because = why;
  waiting = false;
  for (Work* work : std::vector<Work*>(queue.begin(), queue.end()))
    end(*work, ErrorCode::kDeviceLost, told(*work, why));
  for (auto& [number, work] : running) {
    work->with_device = false;
    --work->group->on_device;
    if (work->state != Work::State::kEnded) end(*work, ErrorCode::kDeviceLost, told(*work, why));
  }
  running.clear();
  for (auto& [number, work] : std::exchange(kernels, {})) {
    work->with_device = false;
    if (work->state != Work::State::kEnded) {
      end(*work, ErrorCode::kDeviceLost, told(*work, why));
    } else {
      settle(*work);
    }
  }
  for (auto& [number, of] : groups) {
    of->state.revoked = true;
    of->state.reason = why;
    DeviceFlight::revoked(of->state);
  }
}

std::string DeviceCalls::told(const Work& work, const std::string& what) {
  return cclo::CallQueue::describe(*work.call) + ": " + what;
}

DeviceCalls::Work* DeviceCalls::find(CallId id) {
  const auto found = works.find(id);
  return found == works.end() ? nullptr : found->second.get();
}

CallResult DeviceCalls::result(CallId id) const {
  const auto found = works.find(id);
  return result_of(found == works.end() || found->second->forgotten ? nullptr : &found->second->result, id, last_id);
}

bool DeviceCalls::idle() const {
  return std::all_of(works.begin(), works.end(),
                     [](const auto& entry) { return entry.second->state == Work::State::kEnded; });
}

bool DeviceCalls::harvest() {
  bool any = false;
  use([&] {
    while (!running.empty() && (device->read(exchange::kStatus) & registers::kStatusCompletion) != 0) {
      const std::uint32_t number = device->read(exchange::kCompleted);
      const std::uint32_t answer = device->read(exchange::kCompletedCode);
      const auto found = running.find(number);
      if (found == running.end() || (answer & registers::kCodeGiven) == 0) {
        lost(formatted("it answered a call that it was not given ({}, {})", number, hexadecimal(answer)));
      }
      any = true;
      // Before the call's own result, which may lie in a window.
      if ((answer & 0xffffU) == 0) {
        for (const auto& [other, of] : groups) pull_window(*of);
      }
      complete(*found->second, answer & 0xffffU);
    }
  });
  return any;
}

void DeviceCalls::complete(Work& work, std::uint32_t number) {
  const ErrorCode code = number == 0 ? ErrorCode::kOk : cclo::error_code(number);
  const bool awaited = work.state != Work::State::kEnded;
  const Binding dst = work.region(Region::kDst);
  const bool root_of_bcast = work.call->call.collective == Collective::kBcast && reads_dst(work.call->call);
  if (awaited && number == 0 && work.dst && !root_of_bcast) {
    device->load(work.dst->address + static_cast<std::uint64_t>(dst.data - work.dst->host.data), {dst.data, dst.bytes});
  }
  if (number != 0) device->write(exchange::kStatus, registers::kStatusFailed);
  running.erase(work.number);
  work.with_device = false;
  if (work.program_slot) programs.leave(*work.program_slot);
  work.program_slot.reset();
  Group& of = *work.group;
  --of.on_device;
  if (!awaited) {
    settle(work);
  } else if (number == 0) {
    if (work.call->call.collective == Collective::kRecv) {
      work.result.received_bytes = dst.bytes;
      work.result.status = {work.call->call.root, work.call->tag, dst.bytes, work.call->call.dtype};
    }
    if (work.hooks) work.hooks->after(work.result.received_bytes);
    end(work, ErrorCode::kOk, {});
  } else {
    fail(work, code, reason_of(work, code));
  }
  retire(of);
}

std::string DeviceCalls::reason_of(const Work& work, ErrorCode code) const {
  switch (code) {
    case ErrorCode::kTimeout:
      return "timed out after " + in_words(work.timeout) + " of the device's time; the device does not tell who " +
             "keeps it waiting" + flight.absent(*work.call) + waits_at_switches(*device, *work.call);
    case ErrorCode::kRevoked:
      return "the communicator was revoked after an error of another rank; see that rank's message";
    default:
      break;
  }
  std::string text = std::string("the device ended it with ") + name_of(code) + " (" + meaning_of(code) + ")";
  if (work.point_to_point() && code == ErrorCode::kUnsupported) {
    text += "; a receive on a device must be as long as its message";
  }
  return text;
}

void DeviceCalls::fail(Work& work, ErrorCode code, const std::string& what) {
  if (work.state == Work::State::kEnded) return;
  const std::string message = told(work, what);
  // A message that did not suit its receive concerns this pair alone.
  const bool own = work.point_to_point() && (code == ErrorCode::kTruncated || code == ErrorCode::kMismatchedCall ||
                                             code == ErrorCode::kUnsupported);
  const bool shared = (work.collective() || work.point_to_point()) && !own;
  Group& of = *work.group;
  end(work, code, message);
  if (!shared) return;
  const bool known_there = tells_itself(code);
  revoke(of, known_there ? code : ErrorCode::kRevoked, message, true);
}

void DeviceCalls::end(Work& work, ErrorCode code, std::string message) {
  if (work.state == Work::State::kQueued) dequeue(work);
  work.state = Work::State::kEnded;
  work.result.complete = true;
  work.result.code = code;
  work.result.message = std::move(message);
  DeviceFlight::end(*work.call, code == ErrorCode::kOk);
  if (work.call->kernel) work.call->kernel->leave();
  for (Listener& listener : work.listeners) due.emplace_back(std::move(listener), work.result);
  work.listeners.clear();
  settle(work);
}

void DeviceCalls::settle(Work& work) {
  if (work.with_device) return;
  work.src.reset();
  work.dst.reset();
  work.scratch.reset();
  work.params.reset();
  work.images.clear();
  release_programs(work.prepared);
  work.prepared.clear();
  if (work.forgotten) works.erase(work.id);
}

void DeviceCalls::end_all(Group& of, ErrorCode code, const std::string& what) {
  std::vector<Work*> ended;
  for (auto& [id, work] : works) {
    if (work->group == &of && work->state != Work::State::kEnded) ended.push_back(work.get());
  }
  for (Work* work : ended) end(*work, code, told(*work, what));
}

void DeviceCalls::retire(const Group& of) {
  if (of.on_device != 0) return;
  retiring.remove_if([&](const std::unique_ptr<Group>& one) { return one.get() == &of; });
}

}  // namespace unisono
