// What a collective promises, stated without programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reference/interpreter.hpp"

namespace unisono::reference {

/// What one element must be after the call.
struct Expected {
  enum class Kind : std::uint8_t {
    kAnything,   ///< the collective leaves it open
    kUntouched,  ///< what it was before
    kCopy,       ///< `leaf`
    kReduce,     ///< func over element `leaf.index` of the inputs of ranks [begin, end), in rank order if asked for
    kCombine,    ///< func(leaf, itself)
  };
  Kind kind = Kind::kAnything;
  Leaf leaf;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// Where element `index` of the input of `rank` stands (src, or dst in place).
Leaf input_leaf(const Job& job, std::uint32_t rank, std::uint64_t index);

/// What element `index` of `region` (src, dst or window) of `rank` must be after the call of a job that promises
/// something.
Expected expected(const Job& job, std::uint32_t rank, Region region, std::uint64_t index);

/// Compares the memory after a run with what the collective promises: every leaf exactly once in a reduction (at least
/// once where func(a, a) is a), in rank order too if the algorithm says it is ordered; src untouched; gaps untouched.
/// Returns the first difference; nothing if the job promises nothing.
std::optional<Finding> compare_with_expectation(Interpreter& interpreter, const SymbolRun& run);

/// Final dst by the definition of the collective, computed in rank order with the operators of core/arithmetic.hpp.
/// Integer results are exact whatever the order; floating-point ones if the inputs are such that nothing is rounded.
struct NumberExpectation {
  std::vector<std::vector<std::byte>> dst;  ///< by rank
  std::vector<std::vector<bool>> defined;   ///< by rank and element: false where anything may stand
};
NumberExpectation expected_numbers(const Job& job, const std::vector<RankInput>& inputs);

}  // namespace unisono::reference
