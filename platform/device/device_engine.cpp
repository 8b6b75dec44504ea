#include "platform/device/device_engine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/log.hpp"
#include "core/text.hpp"
#include "engine/kernel_run.hpp"
#include "platform/device/bring_up.hpp"
#include "platform/device/device_calls.hpp"
#include "platform/device/lost.hpp"

namespace unisono {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

/// Of the device's time: how long a host that waits for others lets it run before it looks.
constexpr microseconds kStep{20};
/// Nanoseconds: jobs begin at a multiple of this.
constexpr std::uint64_t kStart = 1'000'000;

}  // namespace

DeviceEngine::DeviceEngine(std::unique_ptr<Device> device, DeviceOptions options)
    : calls_(std::make_unique<DeviceCalls>(std::move(device), std::move(options))) {
  calls_->bring_up();
}

DeviceEngine::~DeviceEngine() = default;

EngineSettings DeviceEngine::within_limits(EngineSettings settings, std::uint64_t capability) {
  if (settings.deadlines != EngineSettings::Deadlines::kFail) {
    throw Error(ErrorCode::kUnsupported,
                "deadlines that warn, or none, were asked for; a device ends calls whose deadline has passed. Leave "
                "deadlines (UNISONO_DEADLINES) at fail, and give a longer timeout");
  }
  std::uint32_t most = DeviceLimits::kSegmentBytes;
  const unsigned log2 = decode_capability({capability}).log2_max_segment;
  if (log2 != 0) most = std::min(most, 1U << log2);
  settings.segment_bytes = std::clamp(settings.segment_bytes / 64 * 64, 64U, std::max(most, 64U));
  settings.eager_limit = std::min(settings.eager_limit, settings.segment_bytes);
  settings.rx_buffer_count = std::clamp(settings.rx_buffer_count, 1U, DeviceLimits::kRxBuffers);
  settings.lanes = false;
  return settings;
}

Agreement DeviceEngine::capabilities_of(std::uint64_t capability, const EngineSettings& settings, std::size_t ranks) {
  NativeEngine::capabilities_of(settings);  // refuses what no engine takes, before it is cut to what this one does
  Agreement capabilities = NativeEngine::capabilities_of(within_limits(settings, capability));
  capabilities.capability = capability;
  // What all peers of the job may send before it is received has a buffer.
  const auto peers = static_cast<std::uint32_t>(std::max<std::size_t>(ranks, 2) - 1);
  capabilities.rx_buffer_count =
      std::min(capabilities.rx_buffer_count, std::max(DeviceLimits::kAllRxBuffers / peers, 1U));
  return capabilities;
}

std::uint64_t DeviceEngine::capability_of(Device& device) { return capability_of_device(device); }

std::vector<std::vector<std::byte>> DeviceEngine::exchange(std::span<const std::byte> own,
                                                           std::chrono::milliseconds patience) {
  const std::lock_guard lock(calls_->turns);
  const std::vector<std::vector<std::byte>> met = calls_->device->meet(own);
  if (!met.empty()) {
    std::vector<std::vector<std::byte>> by_rank;
    for (const std::uint32_t node : calls_->options.nodes) by_rank.push_back(node < met.size() ? met[node] : met[0]);
    return by_rank;
  }
  if (!calls_->hosts) throw Error(ErrorCode::kInternal, "device: its host has no way to others");
  return calls_->hosts->exchange(own, patience, [&] { calls_->device->wait(kStep); });
}

void DeviceEngine::start_together(std::chrono::milliseconds patience) {
  {
    // Nodes that meet leave in the same cycle.
    const std::lock_guard lock(calls_->turns);
    if (!calls_->device->meet({}).empty()) return;
  }
  const std::uint64_t here = static_cast<std::uint64_t>(calls_->device->now().count());
  std::uint64_t last = 0;
  for (const std::vector<std::byte>& told : exchange(std::as_bytes(std::span(&here, 1)), patience)) {
    std::uint64_t time = 0;
    std::memcpy(&time, told.data(), std::min(told.size(), sizeof time));
    last = std::max(last, time);
  }
  const auto start = nanoseconds((last / kStart + 1) * kStart);
  const std::lock_guard lock(calls_->turns);
  Device& device = *calls_->device;
  // A wait of a part of a microsecond would end early, and then be followed by one of none, for ever.
  while (device.now() < start) device.wait(std::chrono::ceil<microseconds>(start - device.now()));
}

std::uint64_t DeviceEngine::write_stream(std::uint32_t port, std::span<const std::byte> bytes, microseconds at_most) {
  calls_->check_stream(port, "write to a stream");
  std::uint64_t done = 0;
  calls_->wait_until(
      [&] {
        calls_->use([&] { done += calls_->device->give(port, bytes.subspan(done)); });
        return done == bytes.size();
      },
      at_most);
  return done;
}

std::uint64_t DeviceEngine::read_stream(std::uint32_t port, std::span<std::byte> bytes, microseconds at_most) {
  calls_->check_stream(port, "read from a stream");
  std::uint64_t done = 0;
  calls_->wait_until(
      [&] {
        calls_->use([&] { done += calls_->device->take(port, bytes.subspan(done)); });
        return done == bytes.size();
      },
      at_most);
  return done;
}

bool DeviceEngine::runs_kernels() const {
  const std::lock_guard lock(calls_->turns);
  return calls_->device->kernels();
}

void DeviceEngine::pass(microseconds at_most) {
  const Turn turn(*calls_);
  calls_->pass(at_most);
}

Agreement DeviceEngine::capabilities() const {
  const std::lock_guard lock(calls_->turns);
  return capabilities_of(calls_->capability, calls_->options.settings, calls_->options.nodes.size());
}

void DeviceEngine::create_communicator(std::uint32_t number, std::uint16_t epoch,
                                       std::span<const std::uint32_t> endpoints, const Agreement& agreed,
                                       const Grouping& grouping) {
  const std::lock_guard lock(calls_->turns);
  calls_->create(number, epoch, endpoints, agreed, grouping);
}

void DeviceEngine::free_communicator(std::uint32_t number) {
  const Turn turn(*calls_);
  calls_->free(number);
}

void DeviceEngine::settle_numbers(std::uint32_t below) noexcept {
  const std::lock_guard lock(calls_->turns);
  calls_->settle(below);
}

void DeviceEngine::name_communicator(std::uint32_t communicator, const std::string& name) {
  const std::lock_guard lock(calls_->turns);
  calls_->group(communicator).state.name(name);
}

void DeviceEngine::set_timeout(std::uint32_t communicator, microseconds timeout) {
  const std::lock_guard lock(calls_->turns);
  if (timeout.count() <= 0) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("a timeout of {} us was given; it must be positive", timeout.count()));
  }
  calls_->group(communicator).state.timeout = timeout;
}

std::uint32_t DeviceEngine::rank(std::uint32_t communicator) const {
  const std::lock_guard lock(calls_->turns);
  return calls_->group(communicator).state.rank;
}

std::uint32_t DeviceEngine::size(std::uint32_t communicator) const {
  const std::lock_guard lock(calls_->turns);
  return calls_->group(communicator).state.size;
}

void DeviceEngine::bind_window(std::uint32_t communicator, Binding window) {
  const std::lock_guard lock(calls_->turns);
  calls_->bind_window(calls_->group(communicator), window);
}

CallId DeviceEngine::submit(const CallRequest& request) {
  const Turn turn(*calls_);
  const CallId id = calls_->submit(request).id;
  calls_->advance();
  return id;
}

LastAlgorithm DeviceEngine::last_algorithm(std::uint32_t communicator) const {
  const std::lock_guard lock(calls_->turns);
  return calls_->group(communicator).last;
}

CommunicatorState DeviceEngine::state(std::uint32_t communicator) const {
  const std::lock_guard lock(calls_->turns);
  const DeviceCalls::Group& of = calls_->group(communicator);
  CommunicatorState state;
  state.number = of.state.number;
  state.epoch = of.state.epoch;
  state.agreed = of.state.agreed;
  state.agreed.segment_bytes = of.state.segment_bytes;
  state.timeout = of.state.timeout;
  state.calls = of.calls;
  state.revoked = of.state.revoked;
  state.carrier = of.switches.words();
  return state;
}

void DeviceEngine::configure(const EngineSettings& settings) {
  NativeEngine::capabilities_of(settings);  // refuses what no engine takes
  const std::lock_guard lock(calls_->turns);
  calls_->options.settings = within_limits(settings, calls_->capability);
  calls_->rules.add(settings.rules);
}

EngineSettings DeviceEngine::settings() const {
  const std::lock_guard lock(calls_->turns);
  return calls_->options.settings;
}

std::size_t DeviceEngine::counters() const { return kAllCounter.size(); }

const char* DeviceEngine::counter_name(std::size_t position) const { return name_of(kAllCounter[position]); }

std::uint64_t DeviceEngine::counter(std::size_t position) const {
  const Counter counter = kAllCounter[position];
  const std::lock_guard lock(calls_->turns);
  // The read of the lower half keeps the upper one as it was.
  const std::uint32_t at = exchange::kCounters + 8 * static_cast<std::uint32_t>(counter);
  const std::uint64_t low = calls_->device->read(at);
  return low | std::uint64_t{calls_->device->read(at + 4)} << 32U;
}

CallResult DeviceEngine::test(CallId id) {
  const Turn turn(*calls_);
  if (CallResult known = calls_->result(id); known.complete) return known;
  if (calls_->waiting) calls_->pass(DeviceCalls::kSlice);
  if (!calls_->waiting) calls_->advance();
  return calls_->result(id);
}

CallResult DeviceEngine::wait(CallId id, microseconds at_most) {
  CallResult result;
  calls_->wait_until(
      [&] {
        result = calls_->result(id);
        return result.complete;
      },
      at_most);
  return result;
}

bool DeviceEngine::wait_any(std::span<const CallId> ids, microseconds at_most) {
  bool found = false;
  calls_->wait_until(
      [&] {
        found = std::any_of(ids.begin(), ids.end(), [&](CallId id) { return calls_->result(id).complete; });
        return found;
      },
      at_most);
  return found;
}

bool DeviceEngine::drive(microseconds at_most) {
  bool idle = false;
  calls_->wait_until(
      [&] {
        idle = calls_->idle();
        return idle;
      },
      at_most);
  return idle;
}

void DeviceEngine::when_complete(CallId id, Listener listener) {
  const Turn turn(*calls_);
  const CallResult now = calls_->result(id);
  if (now.complete) {
    calls_->due.emplace_back(std::move(listener), now);
  } else {
    calls_->find(id)->listeners.push_back(std::move(listener));
  }
}

void DeviceEngine::forget(CallId id) {
  const std::lock_guard lock(calls_->turns);
  DeviceCalls::Work* work = calls_->find(id);
  if (work == nullptr || work->forgotten) {
    result_of(nullptr, id, calls_->last_id);
    return;
  }
  if (!work->result.complete) {
    throw Error(ErrorCode::kInvalidArgument, formatted("call {} is in flight; wait for it first", id));
  }
  work->forgotten = true;
  calls_->settle(*work);
}

void DeviceEngine::progress() {
  const Turn turn(*calls_);
  calls_->advance();
}

void DeviceEngine::revoke(std::uint32_t communicator, const std::string& reason) {
  const Turn turn(*calls_);
  calls_->revoke(calls_->group(communicator), ErrorCode::kRevoked, reason, true);
}

}  // namespace unisono
