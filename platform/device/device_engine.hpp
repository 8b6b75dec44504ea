// The engine of an endpoint that has a device: calls become descriptors in its exchange memory.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "network/poe.hpp"
#include "platform/device/device.hpp"
#include "platform/device/limits.hpp"
#include "platform/device/memory.hpp"

namespace unisono {

/// How an endpoint uses its device.
struct DeviceOptions {
  EngineSettings settings;
  /// Of the device's time: how much later than its deadline a call may end before the device counts as stuck.
  std::chrono::microseconds margin{500'000};
  /// Image of the microcontroller, words from address 0; empty for a device that needs none.
  std::vector<std::uint32_t> firmware;
  /// Node of each endpoint of the job.
  std::vector<std::uint32_t> nodes;
  /// A network among the hosts, by which they learn of each other's end and failures; null if the device's own does
  /// that. Must outlive the engine.
  Poe* hosts = nullptr;
  /// The network by which the job was joined, to look at flight records; null if there is none. Must outlive the
  /// engine.
  const Poe* job = nullptr;
  /// The device writes no flight records itself, so its host does.
  bool records = false;
};

struct DeviceCalls;

/// Carries out calls on a device. Caller-driven like the native engine: it looks at the device inside `submit`, `test`,
/// `wait` and `progress`. What is checked before anything is sent is checked by the native engine's own code.
class DeviceEngine final : public Engine {
 public:
  /// Brings the device up: identity, soft reset, firmware, settings. Throws Error(kDeviceLost) for a device that does
  /// not answer as one should, Error(kUnsupported) for one of another version.
  DeviceEngine(std::unique_ptr<Device> device, DeviceOptions options);
  ~DeviceEngine() override;

  /// `settings` as far as a device with this capability word can have them: sizes beyond the hardware's are cut to it.
  static EngineSettings within_limits(EngineSettings settings, std::uint64_t capability);
  /// What an engine on a device with this capability word brings to an agreement in a job of so many ranks.
  static Agreement capabilities_of(std::uint64_t capability, const EngineSettings& settings, std::size_t ranks = 1);
  /// The capability word of a device. Throws as the constructor does.
  static std::uint64_t capability_of(Device& device);

  /// Every rank of the job gives some bytes and gets those of all, by endpoint; needs `hosts`. The device's time goes
  /// on meanwhile. Throws Error(kBootstrap).
  std::vector<std::vector<std::byte>> exchange(std::span<const std::byte> own, std::chrono::milliseconds patience);
  /// Returns on all ranks of the job at one moment of the devices' time, so that what follows does not depend on how
  /// long their hosts took to get here. Needs `hosts`. Throws Error(kBootstrap).
  void start_together(std::chrono::milliseconds patience);

  /// Lets the device's time go on, up to so much of it; for a host that has nothing to wait for, but others have.
  void pass(std::chrono::microseconds at_most);

  using Engine::wait;
  Agreement capabilities() const override;
  void create_communicator(std::uint32_t number, std::uint16_t epoch, std::span<const std::uint32_t> endpoints,
                           const Agreement& agreed, const Grouping& grouping = {}) override;
  void free_communicator(std::uint32_t number) override;
  void settle_numbers(std::uint32_t below) noexcept override;
  void name_communicator(std::uint32_t communicator, const std::string& name) override;
  void set_timeout(std::uint32_t communicator, std::chrono::microseconds timeout) override;
  std::uint32_t rank(std::uint32_t communicator) const override;
  std::uint32_t size(std::uint32_t communicator) const override;
  /// The device has an image of the window: what this rank changes in it goes there when a call begins, what peers
  /// have put comes to it when a call of this rank has ended. Throws Error(kUnsupported) if a member has no remote
  /// memory, Error(kOutOfMemory).
  void bind_window(std::uint32_t communicator, Binding window) override;
  CallId submit(const CallRequest& request) override;
  LastAlgorithm last_algorithm(std::uint32_t communicator) const override;
  CommunicatorState state(std::uint32_t communicator) const override;
  void configure(const EngineSettings& settings) override;
  EngineSettings settings() const override;
  std::size_t counters() const override;
  const char* counter_name(std::size_t position) const override;
  std::uint64_t counter(std::size_t position) const override;
  CallResult test(CallId id) override;
  CallResult wait(CallId id, std::chrono::microseconds at_most) override;
  bool wait_any(std::span<const CallId> ids, std::chrono::microseconds at_most) override;
  bool drive(std::chrono::microseconds at_most) override;
  std::uint64_t write_stream(std::uint32_t port, std::span<const std::byte> bytes,
                             std::chrono::microseconds at_most) override;
  std::uint64_t read_stream(std::uint32_t port, std::span<std::byte> bytes, std::chrono::microseconds at_most) override;
  bool runs_kernels() const override;
  void when_complete(CallId id, Listener listener) override;
  void forget(CallId id) override;
  void progress() override;
  void revoke(std::uint32_t communicator, const std::string& reason) override;

 private:
  std::unique_ptr<DeviceCalls> calls_;
};

}  // namespace unisono
