// Primitives that stay on one rank: nop, copy, combine.
//
// Source: ACCL section IV.D. One move, so there is nothing to order; combine reads element k of dst
// before it writes element k, which is what a move may do in place.
#include "collectives/build.hpp"
#include "collectives/primitives/primitives.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t nop_direct_steps(const Call& /*call*/) { return 0; }
void nop_direct_step(const Call& /*call*/, std::uint32_t /*s*/, Emit& /*emit*/) {}

std::uint32_t primitive_steps(const Call& /*call*/) { return 1; }

void copy_direct_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  if (call.in_place) return;
  emit(Build(call).take(src()).keep(dst()).count(call.count));
}

void combine_direct_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  emit(Build(call).take(src()).with(dst()).keep(dst()).count(call.count));
}

}  // namespace unisono::collectives
