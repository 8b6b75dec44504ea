// One run of a kernel on a simulated node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/fibre.hpp"
#include "sim/kernels/fibre_kernels.hpp"

namespace unisono::sim {

struct FibreKernels::Run {
  /// What its fibre waits for; in kTicks until a cycle, in which words that are not full stay.
  enum class Wait : std::uint8_t { kNothing, kTicks, kPoll, kGive, kTake, kCall, kAnswer };

  FibreKernels* owner = nullptr;
  std::uint32_t number = 0;
  const unisono_kernel_entry* kernel = nullptr;
  std::uint64_t deadline = 0;  ///< cycle
  std::uint64_t timeout_us = 0;
  std::vector<unisono_kernel_value> values;
  std::vector<device::KernelStart::Member> members;
  std::vector<unisono_communicator*> handles;  ///< of these
  std::vector<unisono_request*> calls;         ///< that the host has prepared
  std::unique_ptr<kernels::Fibre> fibre;
  Wait wait = Wait::kNothing;
  std::uint64_t until = 0;    ///< kTicks, kPoll: cycle
  std::uint32_t port = 0;     ///< kGive, kTake
  std::uint32_t request = 0;  ///< kAnswer
  unisono_result code = 0;
  char sentence[1024] = {};
  std::string error;  ///< the sentence of what failed last

  /// In its fibre: until what it waits for is there.
  void suspend(Wait kind) {
    wait = kind;
    fibre->suspend();
    wait = Wait::kNothing;
  }
};

}  // namespace unisono::sim
