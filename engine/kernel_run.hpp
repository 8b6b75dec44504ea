// What runs in the place of a call's program: a kernel of the user, whose call is a nop (docs/kernels.md), or a carrier
// of collectives (carrier.hpp). The call ends when it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/generated/spec.hpp"

namespace unisono {

struct CallRequest;

/// What a call knows of its kernel. `begin`, `ended` and `leave` are called under the engine's lock: they are short, do
/// not throw and do not use the engine.
class KernelRun {
 public:
  virtual ~KernelRun() = default;
  KernelRun() = default;
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  /// For sentences; lives as long as this.
  virtual const char* name() const = 0;
  /// What the call follows has ended: the kernel goes.
  virtual void begin() = 0;
  /// Whether it has ended; then with what, and a sentence if that is no success.
  virtual bool ended(ErrorCode& code, std::string& sentence) = 0;
  /// Of a carried collective that has not begun anywhere: it is given back, and the engine executes its program.
  virtual bool declines() const { return false; }
  /// What it waits for, in words; empty if it computes.
  virtual std::string waits() const = 0;
  /// Ranks of the call's communicator without which it does not go on, as far as it knows: if one of them has died, the
  /// call fails.
  virtual std::vector<std::uint32_t> awaits() const { return {}; }
  /// The call has ended, perhaps before its kernel: nobody waits for it any more, and it shall not go on.
  virtual void leave() = 0;

  // For a device that runs kernels itself (Device::kernels), beside its engine.
  /// Memory that the kernel reads and perhaps writes.
  struct Memory {
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    bool writes = false;
  };
  virtual std::vector<Memory> memory() const { return {}; }
  /// Communicators that it may use, in its order.
  virtual std::vector<std::uint32_t> communicators() const { return {}; }
  /// Calls that the host has prepared for it. They stay where they are until the kernel has ended.
  virtual std::vector<const CallRequest*> calls() const { return {}; }
  /// What the device's loader gets (platform/device/kernel_start.hpp), once `addresses` are those of its memory,
  /// `places` those of its communicators in the device's table, and `calls` what the device is to be asked for.
  struct Place {
    std::uint32_t position = 0, rank = 0, size = 1;
  };
  virtual std::vector<std::byte> packed(std::span<const std::uint64_t> /*addresses*/, std::span<const Place> /*places*/,
                                        std::span<const CallDescriptor> /*calls*/, std::uint64_t /*timeout_us*/) const {
    return {};
  }
};

}  // namespace unisono
