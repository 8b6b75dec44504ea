// Ring all-gather: every block travels once around the ring.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005; ACCL section IV.E. Cost: (P-1) alpha + (P-1) n beta, n bytes a block.
//
// Each rank puts its own block into its place and sends it right, then takes in each block that comes
// from the left and sends it on, element by element as it comes. Each place of dst is written once, so
// taking in waits for nothing. It is a move of its own: all messages come from one neighbour, so a rank
// listens to the next only when it has used the last up, and if using it up meant sending it on, each
// rank would wait for its right neighbour to listen, all the way around.
#include "collectives/allgather/allgather.hpp"
#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

std::uint32_t rounds_of(const Call& call) { return call.size; }

void round_of(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t size = call.size;
  if (size == 1) {
    if (!call.in_place) emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  const std::uint32_t right = plus(call.rank, 1, size);
  const std::uint64_t offset = minus(call.rank, s, size) * call.count * element_bytes(call);
  if (s == 0) {
    Build own(call);
    own.take(input(call, offset)).send(right, 0).count(call.count);
    if (!call.in_place) own.keep(dst(offset));
    emit(own);
    return;
  }
  emit(Build(call).arrive(minus(call.rank, 1, size), s - 1).keep(dst(offset)).count(call.count));
  if (s < size - 1) emit(Build(call).take(dst(offset)).send(right, s).count(call.count).stream_after(1));
}

}  // namespace

std::uint32_t allgather_ring_steps(const Call& call) { return steps_for(rounds_of(call), 2); }

void allgather_ring_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 2, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
