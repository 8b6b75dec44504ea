// What a kernel of the user sees of its engine, in one cycle: its call stream and its stream ports.
#pragma once

#include <array>
#include <cstdint>

namespace unisono::sim {

inline constexpr unsigned kKernelStreams = 2;  ///< stream ports of a node, in each direction

/// A word on a stream, with what its sender says of it.
struct KernelWord {
  bool valid = false;
  bool last = false;
  std::uint64_t keep = 0;
  std::array<std::uint32_t, 16> data{};
};

/// Outputs of the engine.
struct FromEngine {
  bool call_ready = false;
  bool answer_valid = false;
  std::uint64_t answer = 0;  ///< code in bits 32 to 47, call id below
  std::array<bool, kKernelStreams> in_ready{};
  std::array<KernelWord, kKernelStreams> out;
};

/// Inputs of the engine.
struct ToEngine {
  KernelWord call;
  std::array<KernelWord, kKernelStreams> in;
  std::array<bool, kKernelStreams> out_ready{};
};

/// A kernel. Its outputs may depend on its inputs in the same cycle; those of the engine do not.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual ToEngine evaluate(const FromEngine& engine) = 0;
  /// The clock's edge, with the inputs of the last evaluate().
  virtual void edge() = 0;
};

}  // namespace unisono::sim
