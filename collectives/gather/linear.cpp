// Linear gather: every rank sends its block to the root.
//
// Source: folklore. Cost: (P-1) alpha + (P-1) n beta at the root, n bytes a block.
//
// The root's arrivals write different blocks and wait for nothing, so they are taken as they come. In
// order, they go through dst once, as a stream must.
#include "collectives/build.hpp"
#include "collectives/gather/gather.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t gather_linear_steps(const Call& call) { return call.rank == call.root ? steps_for(call.size) : 1; }

void gather_linear_step(const Call& call, std::uint32_t s, Emit& emit) {
  const Place own{Region::kSrc};
  if (call.rank != call.root) {
    emit(Build(call).take(own).send(call.root, 0).count(call.count));
    return;
  }
  const std::uint64_t block = call.count * element_bytes(call);
  const std::uint32_t begin = s * static_cast<std::uint32_t>(kMovesPerStep);
  for (std::uint32_t i = begin; i < call.size && i < begin + kMovesPerStep; ++i) {
    if (i != call.root) {
      emit(Build(call).arrive(i, 0).keep(dst(i * block)).count(call.count));
    } else if (!call.in_place) {
      emit(Build(call).take(own).keep(dst(i * block)).count(call.count));
    }
  }
}

}  // namespace unisono::collectives
