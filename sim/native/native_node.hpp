// A node whose calls the native engine carries out: a member of a simulated cluster beside engines in Verilog.
#pragma once

#include <cstdint>

#include "platform/device/functional.hpp"
#include "sim/cluster/any_node.hpp"
#include "sim/native/frame_poe.hpp"

namespace unisono::sim {

struct NativeNodeConfig {
  std::uint32_t node = 0;
  std::uint32_t nodes = 0;  ///< of the network, switches that take part in collectives among them
  std::uint64_t clock_khz = 250'000;
  std::uint64_t delay = 0;  ///< cycles that pass before a message that the engine sends leaves
};

/// A functional device on the simulated network. Its host sees the registers that it sees of other nodes, and peers see
/// what engines in hardware send. What the engine computes takes no time: an access takes one cycle, and what has come
/// is answered in the next one, or `delay` cycles later. It depends on nothing but what the network and the host did,
/// so equal runs have equal cycles.
class NativeNode final : public AnyNode {
 public:
  /// `network` must outlive the node. Throws Error.
  NativeNode(const NativeNodeConfig& config, Carrier& network);

  void look() override {}
  void evaluate() override;
  void commit() override { poe_.exchange_words(); }

  void begin(const RegisterAccess& access) override;
  bool busy() const override { return busy_; }
  bool accepted() const override { return accepted_; }
  std::uint32_t value() const override { return value_; }
  bool interrupt() const override { return interrupt_; }

  void store(std::uint64_t address, std::span<const std::byte> bytes) override;
  void load(std::uint64_t address, std::span<std::byte> bytes) const override;
  std::uint64_t memory_bytes() const override { return device_.memory_bytes(); }
  unsigned streams() const override { return device_.streams(); }
  std::size_t give(unsigned port, std::span<const std::byte> bytes) override { return device_.give(port, bytes); }
  std::size_t take(unsigned port, std::span<std::byte> bytes) override { return device_.take(port, bytes); }

  void set_tree(std::uint32_t communicator, std::uint16_t epoch, const CallTree* tree,
                const std::vector<std::uint32_t>& switches) override {
    device_.set_tree(communicator, epoch, tree, switches);
  }

  const FramePoe& network() const { return poe_; }

 private:
  FramePoe poe_;
  mutable FunctionalDevice device_;
  RegisterAccess access_;
  bool busy_ = false, accepted_ = false, interrupt_ = false;
  bool calls_ = false;  ///< the device has calls that have not ended
  std::uint32_t value_ = 0;
  std::uint32_t seen_ = 0;  ///< activity of the network when the engine last looked
};

}  // namespace unisono::sim
