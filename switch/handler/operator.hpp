// Reduction operators of users: handlers whose one function folds arrays of elements (docs/handlers.md, "Operators").
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "switch/handler/interpreter.hpp"
#include "switch/handler/program.hpp"

namespace unisono::handler {

/// The letters USOP, with which the memory of an operator begins.
inline constexpr std::uint32_t kOperatorMagic = 0x504f5355;
/// Bytes of an element, of an operator's memory, and of its binary, at most.
inline constexpr std::uint32_t kMostElementBytes = 64;
inline constexpr std::uint32_t kMostOperatorMemory = 1U << 16U;
inline constexpr std::size_t kMostOperatorBinary = std::size_t{1} << 18U;
/// Instructions for a block of elements, where the caller has no budget of its own.
inline constexpr std::uint64_t kOperatorBudget = std::uint64_t{1} << 22U;
/// A block holds the whole elements of so many bytes at least: each block begins with memory anew, which takes as long
/// as thousands of instructions.
inline constexpr std::uint32_t kLeastOperatorBlock = 4096;

/// Where an operator's function finds its operands: five words of 32 bits at the begin of its memory.
struct OperatorShape {
  std::uint32_t element_bytes = 0;
  std::uint32_t block = 0;  ///< elements that the function folds at once, at most
  std::uint32_t left = 0;   ///< where in memory they begin; results come in their place
  std::uint32_t right = 0;
};

/// The shape, or nothing if the program is no operator: one whose memory does not begin so, or with functions other
/// than payload, with operands beyond its memory, or with blocks that are too small.
std::optional<OperatorShape> operator_shape(const Program& program);

/// Thread-safe. Blocks are folded one after the other, with memory as at the beginning for each of them, so that a
/// result depends on its two operands alone.
class Operator {
 public:
  /// Throws Error(kMalformedProgram) if it is no binary of an operator.
  explicit Operator(std::span<const std::byte> binary);

  std::uint32_t element_bytes() const { return shape_.element_bytes; }
  /// Of its memory.
  std::uint64_t bytes() const { return program_.memory_bytes; }
  const std::string& source() const { return program_.source; }
  /// out[i] = a[i] op b[i] for `count` elements; arrays need no alignment, and `out` may be `a` or `b`. False, with a
  /// sentence in `why`, if the function was stopped or gave a verdict other than 0.
  bool fold(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count, std::string& why) const;
  /// The same, with one budget for all blocks together, from which what was executed is taken.
  bool fold(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count, std::uint64_t& budget,
            std::string& why) const;

 private:
  bool fold_block(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count, std::uint64_t& budget,
                  std::string& why) const;

  Program program_;
  Code code_;
  OperatorShape shape_;
  mutable std::mutex mutex_;
  mutable std::vector<std::byte> memory_;
};

}  // namespace unisono::handler
