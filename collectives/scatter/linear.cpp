// Linear scatter: the root sends each rank its block.
//
// Source: folklore. Cost: (P-1) alpha + (P-1) n beta at the root, n bytes a block.
//
// The root only reads src, so its sends wait for nothing. It goes through src once, in order, as a stream
// must. In place its own block stays where it is.
#include "collectives/build.hpp"
#include "collectives/powers.hpp"
#include "collectives/scatter/scatter.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t scatter_linear_steps(const Call& call) { return call.rank == call.root ? steps_for(call.size) : 1; }

void scatter_linear_step(const Call& call, std::uint32_t s, Emit& emit) {
  if (call.rank != call.root) {
    emit(Build(call).arrive(call.root, 0).keep(dst()).count(call.count));
    return;
  }
  const std::uint64_t block = call.count * element_bytes(call);
  const std::uint32_t begin = s * static_cast<std::uint32_t>(kMovesPerStep);
  for (std::uint32_t i = begin; i < call.size && i < begin + kMovesPerStep; ++i) {
    const Place place{Region::kSrc, i * block};
    if (i != call.root) {
      emit(Build(call).take(place).send(i, 0).count(call.count));
    } else if (!call.in_place) {
      emit(Build(call).take(place).keep(dst()).count(call.count));
    }
  }
}

}  // namespace unisono::collectives
