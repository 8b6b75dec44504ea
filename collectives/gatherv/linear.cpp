// Linear gatherv: every rank sends its block to the root.
//
// Source: folklore. Cost: (P-1) alpha + N beta at the root, N bytes in all.
//
// A rank other than the root reads its own count only. The root's arrivals write different blocks and
// wait for nothing. Both ends read the same count, so an empty block is neither sent nor awaited.
#include "collectives/build.hpp"
#include "collectives/gatherv/gatherv.hpp"
#include "collectives/powers.hpp"
#include "collectives/vectors.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t gatherv_linear_params_words(const Call& call) { return 2 * call.size; }

void gatherv_linear_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words) {
  fill_layout(call, arguments.recv_counts, arguments.recv_displacements, words, arguments.own);
}

std::uint32_t gatherv_linear_steps(const Call& call) { return call.rank == call.root ? steps_for(call.size) : 1; }

void gatherv_linear_step(const Call& call, std::uint32_t s, Emit& emit) {
  const Place own{Region::kSrc};
  if (call.rank != call.root) {
    emit(Build(call).take(own).send(call.root, 0).count_at(call.rank));
    return;
  }
  const std::uint32_t begin = s * static_cast<std::uint32_t>(kMovesPerStep);
  for (std::uint32_t i = begin; i < call.size && i < begin + kMovesPerStep; ++i) {
    const std::uint32_t peer = plus(call.root, i, call.size);
    const Place place = indirect(Region::kDst, call.size + peer);
    if (i > 0) {
      emit(Build(call).arrive(peer, 0).keep(place).count_at(peer));
    } else if (!call.in_place) {
      emit(Build(call).take(own).keep(place).count_at(peer));
    }
  }
}

}  // namespace unisono::collectives
