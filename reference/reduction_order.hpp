// In which order an algorithm reduces: what the bits of a floating-point result depend on.
#pragma once

#include <cstdint>

#include "collectives/algorithm.hpp"
#include "core/call.hpp"

namespace unisono::reference {

struct ReductionOrder {
  /// Of the brackets of every element of every rank's result, with operands named by their ranks; operands of one
  /// operation are not told apart by their side, because operators commute. Equal hashes mean equal bits, of the
  /// operators that commute, but for what fp16 and bf16 keep in fp32 within a move.
  std::uint64_t hash = 0;
  /// How many different orders the elements of one rank's result have at most. With 1, the order depends neither on
  /// where an element stands nor on how many there are.
  std::uint32_t orders = 0;
};

/// The order of a reduction by `algorithm`, found by running it on symbols for all ranks. Throws Error(kUnsupported) if
/// the algorithm does not admit the call, or the collective does not reduce. Takes time and memory in proportion to
/// ranks times elements.
ReductionOrder reduction_order(const Algorithm& algorithm, const Call& call);

}  // namespace unisono::reference
