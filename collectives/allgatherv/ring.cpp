// Ring all-gatherv: every block travels once around the ring.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005. Cost: (P-1) alpha + (P-1) m beta, m bytes in the largest block.
//
// As ring all-gather, with the count and place of each block read from params. All ranks know all
// counts, so an empty block is neither sent nor awaited anywhere. Each place of dst is written once, so
// taking in waits for nothing; sending on follows it element by element, in a move of its own, so that a
// rank goes on listening while its right neighbour is not yet.
#include "collectives/allgatherv/allgatherv.hpp"
#include "collectives/build.hpp"
#include "collectives/powers.hpp"
#include "collectives/vectors.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t allgatherv_ring_params_words(const Call& call) { return 2 * call.size; }

void allgatherv_ring_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words) {
  fill_layout(call, arguments.recv_counts, arguments.recv_displacements, words);
}

namespace {

std::uint32_t rounds_of(const Call& call) { return call.size; }

void round_of(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t size = call.size;
  const std::uint32_t block = minus(call.rank, s, size);
  const std::uint32_t right = plus(call.rank, 1, size);
  const Place place = indirect(Region::kDst, size + block);
  if (s == 0) {
    if (size == 1 && call.in_place) return;
    Build own(call);
    own.take(call.in_place ? place : Place{Region::kSrc}).count_at(block);
    if (!call.in_place) own.keep(place);
    if (size > 1) own.send(right, 0);
    emit(own);
    return;
  }
  emit(Build(call).arrive(minus(call.rank, 1, size), s - 1).keep(place).count_at(block));
  if (s < size - 1) emit(Build(call).take(place).send(right, s).count_at(block).stream_after(1));
}

}  // namespace

std::uint32_t allgatherv_ring_steps(const Call& call) { return steps_for(rounds_of(call), 2); }

void allgatherv_ring_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 2, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
