// A device without hardware: registers and device memory in this process, and the native engine behind them.
#pragma once

#include <memory>
#include <vector>

#include "core/generated/spec.hpp"
#include "core/tree.hpp"
#include "network/poe.hpp"
#include "platform/device/device.hpp"

namespace unisono {

/// Answers to its registers as docs/rtl/exchange.md and call_front.md say, and carries calls out on the native engine,
/// over messages on a network that leads from node to node. Calls make progress while their host reads `status` or
/// waits. Its kernels are its host's: they reach its streams by `give` and `take`.
class FunctionalDevice final : public Device {
 public:
  /// What the hardware engine has, and remote memory.
  static Capability usual_capability();
  static constexpr std::uint64_t kMemoryAddress = std::uint64_t{1} << 32U;  ///< so that no offset passes for an address
  static constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 30U;

  /// What the other members of its communicators are: devices like this one, or some engines in hardware.
  enum class Peers : std::uint8_t { kFunctional, kHardware };

  /// `network` must outlive the device; endpoint n is node n. Throws Error(kOutOfMemory).
  explicit FunctionalDevice(Poe& network, const Capability& capability = usual_capability(),
                            std::uint64_t memory_bytes = kMemoryBytes, Peers peers = Peers::kFunctional);
  ~FunctionalDevice() override;

  using Device::write;
  std::uint32_t read(std::uint32_t offset) override;
  void write(std::uint32_t offset, std::uint32_t value) override;
  std::uint64_t memory_address() const override;
  std::uint64_t memory_bytes() const override;
  void store(std::uint64_t address, std::span<const std::byte> bytes) override;
  void load(std::uint64_t address, std::span<std::byte> bytes) override;
  bool wait(std::chrono::microseconds at_most) override;
  std::uint32_t streams() const override { return kMaxStreamPorts; }
  bool copies_streams() const override { return true; }
  std::size_t give(std::uint32_t port, std::span<const std::byte> bytes) override;
  std::size_t take(std::uint32_t port, std::span<std::byte> bytes) override;
  std::chrono::nanoseconds now() override;
  std::uint32_t node() const override;

  /// Switches of the network take part in a communicator that its host is about to describe, as ranks behind its
  /// members: `tree` says how, `switches` are their endpoints. An engine in hardware gets by with what the registers
  /// say of the switch above it.
  void set_tree(std::uint32_t communicator, std::uint16_t epoch, const CallTree* tree,
                std::vector<std::uint32_t> switches);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace unisono
