// Kernels of a library beside the engine of a node: fibres that the simulated clock resumes, and the bus functional
// model between them and the engine's streams.
//
// A kernel's code takes no time, but for `tick`. A port moves one word in a cycle: what a kernel gives is packed into
// words of 64 bytes, and a word that is not full goes when its kernel waits for something else. What kernels ask for
// goes over the node's call stream as descriptors, 128 bytes in two cycles, and answers come back. All of that depends
// on the engine's pins and on the kernels alone, so equal runs have equal cycles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "kernels/library.hpp"
#include "platform/device/kernel_start.hpp"
#include "sim/cluster/kernel.hpp"

namespace unisono::sim {

/// The table of functions that a library of kernels is opened with in a process of simulated nodes.
const unisono_kernel_services& kernel_services();

/// Memory of the node that kernels reach by pointers.
struct KernelMemory {
  std::byte* data = nullptr;  ///< where this process has it
  std::uint64_t address = 0;  ///< where the engine has it
  std::uint64_t bytes = 0;    ///< of buffers; behind them:
  std::uint64_t scratch = 0;  ///< bytes for scratch of kernels' calls
};

/// The kernels of one node. Between cycles: `start`, `ended`. Not thread-safe; threads may take turns.
class FibreKernels final : public Kernel {
 public:
  /// How a kernel has ended.
  struct Ended {
    std::uint32_t number = 0;
    ErrorCode code = ErrorCode::kOk;
    std::string sentence;
  };

  /// The library must outlive it.
  FibreKernels(const kernels::Library& library, std::uint32_t node, std::uint64_t clock_khz,
               const KernelMemory& memory);
  ~FibreKernels() override;

  /// Starts a kernel with the next cycle, when so many have ended. What is wrong with it is its end.
  void start(std::uint32_t number, const device::KernelStart& start, std::uint64_t cycles);
  /// One that is not even tried has ended.
  void refuse(std::uint32_t number, const std::string& why) {
    ended_.push_back({number, ErrorCode::kInvalidArgument, why});
  }
  /// Kernels that have ended since the last call.
  std::vector<Ended> take_ended();
  bool has_ended() const { return !ended_.empty(); }
  /// No kernel runs, and nothing of one is offered to the engine.
  bool idle() const;

  ToEngine evaluate(const FromEngine& engine) override;
  void edge() override;

  struct Run;  // of one kernel; what the library's functions work on

 private:
  friend struct KernelCalls;  // those functions

  /// A call on the engine that a kernel has given.
  struct Request {
    std::uint32_t id = 0;
    std::string name;
    const Run* run = nullptr;
    bool answered = false;
    bool forgotten = false;  ///< nobody asks for it any more
    std::uint16_t code = 0;
    std::uint64_t scratch = 0;               ///< its address, 0: none
    std::optional<CallDescriptor> prepared;  ///< by the host, to be started by its run
  };

  void check_ports(const unisono_kernel_entry& kernel) const;
  void begin(const unisono_kernel_entry& kernel, std::uint32_t number, const device::KernelStart& start);
  void resume(Run& run);
  void end(Run& run, ErrorCode code, std::string sentence);
  std::string waits(const Run& run) const;
  void take_words();
  void load_word(unsigned port);
  void flush();
  std::uint64_t address_of(const void* pointer, std::uint64_t bytes, const char* what) const;
  std::uint64_t scratch_for(std::uint64_t bytes);

  const kernels::Library& library_;
  const std::uint32_t node_;
  const std::uint64_t clock_khz_;
  const KernelMemory memory_;
  std::uint64_t cycle_ = 0;  ///< of the cluster, as long as a kernel runs
  std::list<std::unique_ptr<Run>> runs_;
  std::vector<Ended> ended_;
  std::deque<KernelWord> calls_;  ///< beats of descriptors that wait for the engine
  std::list<Request> requests_;
  std::uint32_t last_id_ = 0;
  std::uint64_t scratch_used_ = 0;
  std::array<std::vector<std::byte>, kKernelStreams> packed_;  ///< given, and no whole word yet
  std::array<KernelWord, kKernelStreams> word_{};              ///< offered to the engine
  std::array<std::deque<std::byte>, kKernelStreams> taken_;    ///< come, and not taken by a kernel
  std::array<std::uint64_t, kKernelStreams> want_{};           ///< bytes that a kernel waits for, or has looked for
  FromEngine seen_;
  ToEngine driven_;
};

}  // namespace unisono::sim
