// A kernel of a library that a host has called by name, and that runs in this process, as a fibre of its rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver/objects.hpp"
#include "engine/kernel_run.hpp"
#include "kernels/library.hpp"

namespace unisono::kernels {

class Rank;

/// Which stream ports of a rank have a kernel that runs. Thread-safe.
class PortsInUse {
 public:
  /// Takes the ports of a kernel; or returns a sentence about one that another kernel has.
  std::string take(const unisono_kernel_entry& kernel);
  void give_back(const unisono_kernel_entry& kernel);

 private:
  std::mutex mutex_;
  std::vector<const unisono_kernel_entry*> running_;
};

/// Thread-safe.
class NamedRun final : public KernelRun, public std::enable_shared_from_this<NamedRun> {
 public:
  struct Arguments {
    std::vector<unisono_kernel_value> values;
    std::vector<Memory> memory;  ///< of the values that are memory, in their order
    std::vector<std::shared_ptr<driver::Communicator>> communicators;
    std::vector<unisono_communicator*> handles;           ///< of these
    std::vector<std::shared_ptr<driver::Request>> calls;  ///< that the host has prepared
    std::vector<unisono_request*> call_handles;           ///< of these
  };
  NamedRun(const unisono_kernel_entry& kernel, Arguments arguments, unisono_context* context,
           std::shared_ptr<PortsInUse> ports);

  /// What the fibre does: waits until it is to begin, and runs the kernel. The error code, and a sentence.
  ErrorCode run(Rank& rank, Engine& engine, std::string& sentence);
  /// The fibre has ended.
  void finish(ErrorCode code, const std::string& sentence);
  /// Nobody waits for it.
  bool left() const { return state_.load() == State::kLeft; }

  /// What it is at, for `waits`.
  enum class At : std::uint8_t { kComputes, kGives, kTakes, kCommand };
  void at(At what, std::uint32_t port = 0) { at_.store(static_cast<std::uint32_t>(what) | port << 8U); }

  const char* name() const override { return kernel_.name; }
  void begin() override;
  bool ended(ErrorCode& code, std::string& sentence) override;
  std::string waits() const override;
  void leave() override;
  std::vector<Memory> memory() const override { return arguments_.memory; }
  std::vector<std::uint32_t> communicators() const override;
  std::vector<const CallRequest*> calls() const override;
  std::vector<std::byte> packed(std::span<const std::uint64_t> addresses, std::span<const Place> places,
                                std::span<const CallDescriptor> calls, std::uint64_t timeout_us) const override;

 private:
  enum class State : std::uint8_t { kMade, kBegun, kEnded, kLeft };

  const unisono_kernel_entry& kernel_;
  const Arguments arguments_;
  unisono_context* const context_;
  const std::shared_ptr<PortsInUse> ports_;
  std::atomic<State> state_{State::kMade};
  std::atomic<std::uint32_t> at_{0};
  mutable std::mutex mutex_;
  bool has_ports_ = false;
  ErrorCode code_ = ErrorCode::kOk;
  std::string sentence_;
};

}  // namespace unisono::kernels
