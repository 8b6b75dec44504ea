// One Verilated engine of a simulated cluster: its memory, its place in the network, and its host's registers.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/generated/spec.hpp"
#include "sim/cluster/any_node.hpp"
#include "sim/cluster/call_log.hpp"
#include "sim/cluster/host_kernel.hpp"
#include "sim/cluster/kernel.hpp"
#include "sim/cluster/model.hpp"
#include "sim/cluster/twin.hpp"
#include "sim/kernels/fibre_kernels.hpp"
#include "sim/memory/axi_memory.hpp"
#include "sim/memory/axi_pins.hpp"
#include "sim/network/network.hpp"

namespace unisono::sim {

struct NodeConfig {
  std::uint32_t node = 0;
  std::uint64_t seed = 1;
  AxiMemoryConfig memory;
  std::string firmware;     ///< words in hexadecimal, one a line; empty: the host loads it
  std::string wave;         ///< file for waveforms; only in a build that has them
  bool trace = false;       ///< keeps a record of each move that retires
  bool skip = true;         ///< leaves cycles out in which nothing can happen
  bool check_skip = false;  ///< has a twin beside it that leaves none out, and stops at the first difference
  const kernels::Library* kernels = nullptr;  ///< that its host may start; null: none
  std::uint64_t clock_khz = 250'000;          ///< for deadlines of kernels
  bool trust_silence = false;  ///< for tests of that: takes an engine at whose pins nothing happens for one that rests
};

class Node final : public AnyNode {
 public:
  /// Buffers of the host may stand here; receive buffers of the engine are elsewhere.
  static constexpr std::uint64_t kMemoryAddress = std::uint64_t{1} << 32U;
  static constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 32U;
  static constexpr unsigned kMemoryPorts = 3;
  /// Of these, the last ones are scratch of kernels' calls, where there are kernels.
  static constexpr std::uint64_t kKernelScratchBytes = std::uint64_t{256} << 20U;

  /// In reset for some cycles, which are over when this returns. Throws Error(kUnsupported) for a wave in a build
  /// without.
  Node(const NodeConfig& config, Carrier& network);
  ~Node() override;

  void look() override;
  bool idle() const override { return resting_ && !disturbed(); }
  void evaluate() override;
  void commit() override;

  std::uint64_t calm() const override;
  void pass(std::uint64_t cycles) override;

  void begin(const RegisterAccess& access) override;
  bool busy() const override { return busy_; }
  bool accepted() const override { return accepted_; }
  std::uint32_t value() const override { return value_; }
  bool interrupt() const override;

  /// Attaches a kernel to the call stream and the stream ports. It must outlive the node, or be taken back (null).
  void attach(Kernel* kernel) {
    end_rest();
    kernel_ = kernel;
  }

  /// A kernel of the program that was attached comes first.
  unsigned streams() const override { return kernel_ == nullptr || kernel_ == &host_kernel_ ? kKernelStreams : 0; }
  HostKernel* host_kernel() override {
    if (kernel_ == nullptr) attach(&host_kernel_);
    return kernel_ == &host_kernel_ ? &host_kernel_ : nullptr;
  }
  void leave_streams() override;
  FibreKernels* kernels() override { return kernels_.get(); }
  void start_kernel(std::uint32_t number, const device::KernelStart& start) override;
  void leave_kernels() override;

  /// Gives a call as a kernel does, on its stream. The call before must have been taken.
  void call(const std::array<std::uint64_t, 16>& descriptor);
  bool calling() const { return beats_left_ != 0; }
  struct Answer {
    std::uint32_t call_id = 0;
    std::uint16_t code = 0;
    std::uint64_t cycle = 0;  ///< of the network, in which it was offered
  };
  /// Answers to kernels' calls that were not taken from here yet, oldest first.
  std::deque<Answer>& answers() { return answers_; }
  /// The cycle in which the first word of data went out since `forget_first_sent`; 0: none. To measure latencies.
  std::uint64_t first_sent() const { return first_sent_; }
  void forget_first_sent() { first_sent_ = 0; }

  /// Cycles in which the model was evaluated, trials of whether it rests included; the others were skipped.
  std::uint64_t evaluated() const { return evaluated_; }

  /// Bit n: what counter n counts (`Counter`) happened in the last cycle.
  std::uint64_t events() const { return events_; }
  /// Of the moves that have retired, in that order, if the node keeps them.
  const std::vector<MoveRecord>& records() const { return records_; }
  /// The calls that it was given, if it keeps records.
  const CallLog& calls() const { return log_; }

  void store(std::uint64_t address, std::span<const std::byte> bytes) override;
  void load(std::uint64_t address, std::span<std::byte> bytes) const override;
  std::uint64_t memory_bytes() const override { return kMemoryBytes - (kernels_ ? kKernelScratchBytes : 0); }
  AxiMemory& memory() { return memory_; }

 private:
  void offer_beat();
  void receive();
  void join_kernel();

  // Rest: no cycle of the engine is evaluated until something comes, or its time does. The pins stay as they were, but
  // for the readies of who takes words, which mean nothing while none is offered.
  /// Whether it is worth a trial: nothing has happened for a while.
  bool may_rest() const { return skips_ && kernel_ == nullptr && silent_ >= next_trial_; }
  /// The clock is low, and time stands still. Whether the engine rests from this cycle on.
  bool begin_rest();
  /// A cycle of rest. May end it: what comes in the next one is then seen.
  void rest();
  /// Gives the engine the cycles of its rest.
  void end_rest();
  /// Something that the network shows in this cycle ends the rest.
  bool disturbed() const;
  /// Whether the pins let anything be handed over, by either side, in this cycle.
  bool hands_over() const;
  void count_silence();

  Model model_;
  Vunisono_cclo_frame& top_;
  class Wave;
  std::unique_ptr<Wave> wave_;
  const std::uint32_t node_;
  Carrier& network_;
  AxiMemory memory_;
  AxiPins pins_;
  // Between `evaluate` and `commit`; the data is copied, for the clock's edge changes the pins.
  SentWord sent_;
  std::array<std::byte, kWordBytes> sent_data_;
  bool sends_ = false, pops_ = false;
  Kernel* kernel_ = nullptr;
  HostKernel host_kernel_;
  std::unique_ptr<FibreKernels> kernels_;
  RegisterAccess access_;
  std::array<std::uint64_t, 16> calling_{};
  unsigned beats_left_ = 0;
  std::deque<Answer> answers_;
  std::uint64_t first_sent_ = 0, events_ = 0;
  const ReceivedWord* word_ = nullptr;  ///< that the network shows in this cycle
  const bool skips_, trusts_;
  std::unique_ptr<Twin> twin_;
  bool resting_ = false, memory_rests_ = false;
  std::uint32_t rested_ = 0, longest_rest_ = 0;  ///< cycles
  std::uint32_t silent_ = 0, next_trial_ = 0;    ///< cycles in which nothing was seen to happen
  std::uint32_t patience_ = 0;                   ///< cycles until a trial that has failed is made again
  std::array<AxiInputs, kMemoryPorts> offered_;  ///< what the engine drives while it rests
  std::uint64_t evaluated_ = 0;
  const bool trace_;
  std::vector<MoveRecord> records_;
  CallLog log_;
  std::array<std::uint64_t, kCallDescriptorWords> kernel_call_{};  ///< of a kernel, as its beats come
  bool busy_ = false, accepted_ = false;
  std::uint32_t value_ = 0;
};

}  // namespace unisono::sim
