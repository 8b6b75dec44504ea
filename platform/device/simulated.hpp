// A node of a simulated cluster, reached over a socket that the process inherited (protocol.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "platform/device/device.hpp"
#include "platform/device/protocol.hpp"

namespace unisono {

/// Requests to the process that simulates the cluster. Whatever goes wrong on the way (it has ended, speaks something
/// else, does not answer) is Error(kDeviceLost), and stays so.
class SimulatedDevice final : public Device {
 public:
  /// Of this machine's time: how long an answer may take. Simulated time stands still while any rank computes, so this
  /// is also how long a rank may do so while another waits.
  static constexpr std::chrono::milliseconds kPatience{600'000};

  /// Takes over the descriptor and greets. Throws Error(kDeviceLost).
  explicit SimulatedDevice(int descriptor, std::chrono::milliseconds patience = kPatience);
  ~SimulatedDevice() override;

  std::uint32_t read(std::uint32_t offset) override;
  void write(std::uint32_t offset, std::uint32_t value) override;
  void write(std::uint32_t offset, std::span<const std::uint32_t> values) override;
  std::uint64_t memory_address() const override { return greeting_.memory_address; }
  std::uint64_t memory_bytes() const override { return greeting_.memory_bytes; }
  void store(std::uint64_t address, std::span<const std::byte> bytes) override;
  void load(std::uint64_t address, std::span<std::byte> bytes) override;
  bool wait(std::chrono::microseconds at_most) override;
  std::chrono::nanoseconds now() override { return std::chrono::nanoseconds(time_); }
  std::vector<std::vector<std::byte>> meet(std::span<const std::byte> own) override;
  std::vector<Broken> broken() override;
  Tree join_tree(const TreeQuestion& question) override;
  void leave_tree(std::uint32_t communicator, std::uint16_t epoch) override;
  std::string tree_waits(std::uint32_t communicator, std::uint16_t epoch) override;
  void meanwhile(const std::function<void()>& action) override { meanwhile_ = action; }
  std::uint32_t streams() const override {
    return static_cast<std::uint32_t>(greeting_.features >> device::kStreamsShift) & 0xffU;
  }
  std::size_t give(std::uint32_t port, std::span<const std::byte> bytes) override;
  std::size_t take(std::uint32_t port, std::span<std::byte> bytes) override;
  bool kernels() const override { return (greeting_.features & device::kRunsKernels) != 0; }
  void start_kernel(std::uint32_t number, std::span<const std::byte> start) override;
  std::vector<EndedKernel> ended_kernels() override;
  std::uint32_t node() const override { return greeting_.node; }
  const device::Greeting& greeting() const { return greeting_; }

 private:
  using Clock = std::chrono::steady_clock;

  [[noreturn]] void lose(const std::string& what);
  /// Sends a request and reads its reply. Throws Error(kInvalidArgument) where the node answered with an error.
  device::Reply ask(device::RequestKind kind, std::uint64_t argument, std::uint64_t length,
                    std::span<const std::byte> payload, std::span<std::byte> answer);
  void send(std::span<const std::byte> bytes, Clock::time_point end);
  void receive(std::span<std::byte> bytes, Clock::time_point end);
  void begin(device::RequestKind kind, std::uint64_t argument, std::uint64_t length,
             std::span<const std::byte> payload);
  /// The next reply's head.
  device::Reply head(Clock::time_point end);
  /// A whole reply whose length only the cluster knows.
  std::vector<std::byte> told(const char* what);
  device::Reply finish(std::uint64_t expected, std::span<std::byte> answer);
  bool readable(std::chrono::milliseconds at_most);

  int descriptor_;
  std::chrono::milliseconds patience_;
  device::Greeting greeting_{};
  std::uint64_t time_ = 0;    ///< nanoseconds, at the last reply
  bool waiting_ = false;      ///< a kWait is under way
  bool breaks_ = false;       ///< the cluster has sessions to tell of that have broken
  bool kernels_end_ = false;  ///< and of kernels that have ended
  Clock::time_point asked_{};
  std::string lost_because_;
  std::function<void()> meanwhile_;
};

}  // namespace unisono
