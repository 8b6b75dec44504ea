// What a node of a simulated cluster is, whatever carries out its calls: to the network, and to its host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/tree.hpp"

namespace unisono::device {
struct KernelStart;
}

namespace unisono::sim {

class FibreKernels;

class HostKernel;

/// What a host asks of the exchange memory, as one transfer on AXI4-Lite.
struct RegisterAccess {
  bool write = false;
  std::uint32_t offset = 0;
  std::uint32_t value = 0;
};

class AnyNode {
 public:
  virtual ~AnyNode() = default;
  AnyNode() = default;
  AnyNode(const AnyNode&) = delete;
  AnyNode& operator=(const AnyNode&) = delete;

  // A cycle of the clock, in three parts. Only `evaluate` may run at the same time as that of other nodes: it changes
  // nothing but this node, and the network stands still meanwhile.
  /// What the network shows the node in this cycle.
  virtual void look() = 0;
  virtual void evaluate() = 0;
  /// After `look`: whether this cycle's `evaluate` takes next to no time.
  virtual bool idle() const { return false; }
  /// What the node has sent and taken.
  virtual void commit() = 0;

  /// Between cycles: for how many from now on nothing happens here if nothing comes; and that so many pass at once.
  virtual std::uint64_t calm() const { return 0; }
  virtual void pass(std::uint64_t /*cycles*/) {}

  /// Begins an access; the one before must have ended.
  virtual void begin(const RegisterAccess& access) = 0;
  virtual bool busy() const = 0;
  /// Of the access that ended last: whether the engine took it, and what was read.
  virtual bool accepted() const = 0;
  virtual std::uint32_t value() const = 0;

  /// A completion waits.
  virtual bool interrupt() const = 0;

  /// Stream ports that a host can reach: by a kernel beside the engine, or, where that is null, at once.
  virtual unsigned streams() const { return 0; }
  virtual HostKernel* host_kernel() { return nullptr; }
  virtual std::size_t give(unsigned /*port*/, std::span<const std::byte> /*bytes*/) { return 0; }
  virtual std::size_t take(unsigned /*port*/, std::span<std::byte> /*bytes*/) { return 0; }
  /// Kernels of the cluster's library beside the engine; null: it runs none.
  virtual FibreKernels* kernels() { return nullptr; }
  /// Starts one there, under a number of the host's.
  virtual void start_kernel(std::uint32_t /*number*/, const device::KernelStart& /*start*/) {}
  /// No kernel may run any more: lets the engine rest.
  virtual void leave_kernels() {}

  /// The host has done with its streams for now.
  virtual void leave_streams() {}

  /// Switches take part in a communicator of this node, which its host is about to describe. For engines that are not
  /// hardware: that one needs no more than the registers.
  virtual void set_tree(std::uint32_t /*communicator*/, std::uint16_t /*epoch*/, const CallTree* /*tree*/,
                        const std::vector<std::uint32_t>& /*switches*/) {}

  /// Device memory, past the ports, and how much of it a host may use.
  virtual void store(std::uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual void load(std::uint64_t address, std::span<std::byte> bytes) const = 0;
  virtual std::uint64_t memory_bytes() const = 0;
};

}  // namespace unisono::sim
