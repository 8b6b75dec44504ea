// What a host sees of an engine that is not its own code: exchange memory, device memory, and waiting.
//
// Offsets and meanings of the exchange memory are in spec/exchange.yaml. A device may be the native engine behind the
// same registers (functional), a Verilated node of a simulated cluster, or a card.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace unisono {

/// One engine, as its host reaches it. Not thread-safe: threads that share a device hold a lock around each use.
/// Everything throws Error(kDeviceLost) when the device is gone.
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Reads or writes a 32-bit register. Throws Error(kInvalidArgument) where the map has none.
  virtual std::uint32_t read(std::uint32_t offset) = 0;
  virtual void write(std::uint32_t offset, std::uint32_t value) = 0;
  /// Writes consecutive registers.
  virtual void write(std::uint32_t offset, std::span<const std::uint32_t> values);

  /// Memory of the device that buffers may be placed in: [memory_address, memory_address + memory_bytes).
  virtual std::uint64_t memory_address() const = 0;
  virtual std::uint64_t memory_bytes() const = 0;
  /// Copies between host and device memory.
  virtual void store(std::uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual void load(std::uint64_t address, std::span<std::byte> bytes) = 0;

  /// Returns true when a completion waits in `status`, or when `at_most` of the device's time has passed. Returns false
  /// after some time of this machine, so that the caller can look at other things: the wait goes on, `wait` continues
  /// it, and any other use begins when it has ended. In a simulated cluster time passes only while its hosts wait.
  virtual bool wait(std::chrono::microseconds at_most) = 0;
  /// The device's clock, in which deadlines of calls are counted. Only differences mean something.
  virtual std::chrono::nanoseconds now() = 0;

  /// Stream ports that a host can be the kernel of, in each direction.
  virtual std::uint32_t streams() const { return 0; }
  /// Whether it keeps a copy of an operand whose elements an algorithm takes twice, or out of order.
  virtual bool copies_streams() const { return false; }
  /// What a kernel of the host does at one of these: gives bytes, as many as find room, and takes bytes that are there.
  /// Both return how many, and wait for next to no time.
  virtual std::size_t give(std::uint32_t port, std::span<const std::byte> bytes);
  virtual std::size_t take(std::uint32_t port, std::span<std::byte> bytes);

  /// Whether it runs kernels of the user beside its engine.
  virtual bool kernels() const { return false; }
  /// Starts one under a number of the caller's. `start`: see kernel_start.hpp. What is wrong with it is its end.
  virtual void start_kernel(std::uint32_t number, std::span<const std::byte> start);
  /// How a kernel has ended.
  struct EndedKernel {
    std::uint32_t number = 0;
    ErrorCode code = ErrorCode::kOk;
    std::string sentence;  ///< empty on success
  };
  /// Those that have ended since the last call.
  virtual std::vector<EndedKernel> ended_kernels() { return {}; }

  /// Tells the hosts of all devices something, and returns when all have: what each has told, by node. Empty for a
  /// device that has no such way.
  virtual std::vector<std::vector<std::byte>> meet(std::span<const std::byte> own);

  /// A way between this device and another on which something is missing; what was sent behind it does not arrive.
  struct Broken {
    std::uint32_t source = 0, destination = 0;  ///< nodes, one of them this one
    bool control = false;                       ///< of the control channel: credits and grants, not data
    std::uint64_t missing = 0;                  ///< number of the first frame that has not come
    std::uint64_t until = 0;                    ///< of the one behind the gap
    bool nothing_came = false;                  ///< nor has that one
  };
  /// What has broken since the last call. Empty for a device whose transport loses nothing.
  virtual std::vector<Broken> broken() { return {}; }

  /// Switches of the network that take part in the collectives of a communicator, as ranks behind its members.
  struct Tree {
    std::string text;                     ///< in brackets (core/tree_table.hpp); empty: there is none
    std::vector<std::uint32_t> switches;  ///< sessions that lead to them, in the order of the brackets
    std::string reason;                   ///< why there is none, where the network has switches of that kind
  };
  /// What a communicator is told to its switches by.
  struct TreeQuestion {
    std::uint32_t communicator = 0;
    std::uint16_t epoch = 0;
    std::uint32_t eager_limit = 0, segment_bytes = 0, rx_buffers = 0;
    std::span<const std::uint32_t> nodes;  ///< of the members, by rank
  };
  /// Asks for them; every member does, and all get the same answer.
  virtual Tree join_tree(const TreeQuestion& /*question*/) { return {}; }
  virtual void leave_tree(std::uint32_t /*communicator*/, std::uint16_t /*epoch*/) {}
  /// What calls wait for at the switches, in lines.
  virtual std::string tree_waits(std::uint32_t /*communicator*/, std::uint16_t /*epoch*/) { return {}; }

  /// `action` is called from time to time, of this machine's, while any use of the device takes long. It must not use
  /// the device itself.
  virtual void meanwhile(const std::function<void()>& /*action*/) {}

  /// The transport's address of this device, and the session that leads from here to another.
  virtual std::uint32_t node() const = 0;
};

}  // namespace unisono
