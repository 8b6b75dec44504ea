// Ring reduce-scatter: a block travels once around the ring and collects every rank's part.
//
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// JPDC 2009 (its first half). Cost: (P-1) alpha + (P-1) n beta + (P-1) n gamma, n bytes a block.
//
// Block b starts at rank b+1 and travels right; each rank adds its own part as the block passes; after
// P-1 hops it reaches rank b complete.
//
// A step is two moves: one takes the sum in and adds to it, the other follows it element by element and
// sends it right. (One move for both would close a circle: all messages come from one neighbour, so a
// rank listens to the next only when it has used the last up, and using it up would wait for the right
// neighbour to listen, all the way around.) Sums on their way stand in two blocks of scratch by turns.
// Taking in step s waits until step s-2 has been sent, which the right neighbour takes in its step s-1,
// which waits for its step s-3: waiting falls by two steps a hop and so ends.
//
// In place there is one hazard more: the result goes to the begin of dst, where block 0 of the input
// stands. Rank r uses that block in step r-1. For r > 1 that is an arrival from the left, before the
// last one, and so in order; rank 1 sends it in its first move, and its last move waits for that.
#include "collectives/build.hpp"
#include "collectives/powers.hpp"
#include "collectives/reduce_scatter/reduce_scatter.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint64_t reduce_scatter_ring_scratch_bytes(const Call& call) {
  return call.size <= 2 ? 0 : 2 * call.count * element_bytes(call);
}

namespace {

std::uint32_t rounds_of(const Call& call) { return call.size; }

void round_of(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t size = call.size;
  if (size == 1) {
    if (!call.in_place) emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  const std::uint32_t right = plus(call.rank, 1, size);
  const std::uint32_t left = minus(call.rank, 1, size);
  const std::uint64_t block = call.count * element_bytes(call);
  const Place own = input(call) + minus(left, s, size) * block;
  if (s == 0) {
    emit(Build(call).take(own).send(right, 0).count(call.count));
    return;
  }
  Build in(call);
  in.take(own).arrive(left, s - 1).count(call.count);
  if (s == size - 1) {
    in.keep(dst());
    if (call.in_place && call.rank == 1) in.after(emit.moves());
    emit(in);
    return;
  }
  const Place sum = scratch(s % 2 * block);
  in.keep(sum);
  if (s > 2) in.after(3);  // step s-2 has been sent
  emit(in);
  emit(Build(call).take(sum).send(right, s).count(call.count).stream_after(1));
}

}  // namespace

std::uint32_t reduce_scatter_ring_steps(const Call& call) { return steps_for(rounds_of(call), 2); }

void reduce_scatter_ring_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 2, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
