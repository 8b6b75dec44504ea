// The whole program of a call: the algorithm's moves, and what an operator asks for after them. Freestanding.
#pragma once

#include <cstdint>

#include "collectives/algorithm.hpp"
#include "collectives/build.hpp"
#include "collectives/by_position.hpp"
#include "collectives/tree_place.hpp"
#include "core/footprint.hpp"

namespace unisono {

/// Steps of a call's program. A mean is one step more than its sum.
inline std::uint32_t generation_steps(const Algorithm& algorithm, const Call& call) {
  return algorithm.steps(call) + (call.func == Func::kAvg ? 1 : 0);
}

/// Emits step s of generation_steps(). For a mean, the algorithm makes the sum; then every rank divides its copy of the
/// result in one move, so that equal sums become equal means. That move follows all others: they may still be reading
/// what it overwrites.
inline void generation_step(const Algorithm& algorithm, const Call& call, std::uint32_t s, Emit& emit) {
  if (call.func != Func::kAvg) {
    algorithm.step(call, s, emit);
    return;
  }
  Call sum = call;
  sum.func = Func::kSum;
  if (s < algorithm.steps(sum)) {
    algorithm.step(sum, s, emit);
    return;
  }
  if (build::is_virtual(call)) return;  // a switch has no result of its own
  const std::uint32_t before = emit.moves();
  const Extent result = uses_of(call).writes;  // in place, more than the result is bound
  if (result == Extent::kOwn) {                // whose length stands in params
    build::Build divide(sum);
    divide.take(build::dst())
        .keep(build::dst())
        .count_at(build::own_count_word(algorithm, call))
        .after_all(before)
        .function(Func::kAvg);
    emit(divide);
    return;
  }
  if (result == Extent::kNothing || call.count == 0) return;
  build::Build divide(sum);
  divide.take(build::dst()).keep(build::dst()).count(call.count).after_all(before).function(Func::kAvg);
  emit(divide);
}

}  // namespace unisono
