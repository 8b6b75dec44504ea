// Ring reduce-scatterv: a block travels once around the ring and collects every rank's part.
//
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// JPDC 2009 (its first half), with a count per rank. Cost: (P-1) alpha + (P-1) m beta + (P-1) m gamma,
// m bytes in the largest block.
//
// As ring reduce-scatter, whose file explains why a step is two moves and why waiting ends. Sums on
// their way stand in two halves of scratch by turns, each as long as the whole vector, for all counts may
// be one rank's. All ranks know all counts, so an empty block travels nowhere. A step that has one waits for
// nothing while it sends, so taking in waits for both moves of the step whose place it takes, not for its
// sending alone.
//
// In place the last sum, too, goes to scratch, and from there to the begin of dst when all of the input
// has been read.
#include "collectives/build.hpp"
#include "collectives/powers.hpp"
#include "collectives/reduce_scatterv/layout.hpp"
#include "collectives/reduce_scatterv/reduce_scatterv.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint64_t reduce_scatterv_ring_scratch_bytes(const Call& call) {
  return call.size > 2 || call.in_place ? 2 * largest_block(call) : 0;
}

namespace {

/// The last round copies the result in place.
std::uint32_t rounds_of(const Call& call) { return call.size + 1; }

void round_of(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t size = call.size;
  if (s == size) {
    const std::uint32_t before = emit.moves();
    if (!call.in_place) return;
    const Place sum = scratch((size - 1) % 2 * largest_block(call));
    emit(Build(call).take(sum).keep(dst()).count_at(call.rank).after_all(before));
    return;
  }
  if (size == 1) {
    emit(Build(call).take(block_of(call, 0)).keep(result_of(call)).count_at(0));
    return;
  }
  const std::uint32_t right = plus(call.rank, 1, size);
  const std::uint32_t left = minus(call.rank, 1, size);
  const std::uint32_t block = minus(left, s, size);
  if (s == 0) {
    emit(Build(call).take(block_of(call, block)).send(right, 0).count_at(block));
    return;
  }
  const bool last = s == size - 1;
  const Place sum = scratch(s % 2 * largest_block(call));
  Build in(call);
  in.take(block_of(call, block)).arrive(left, s - 1).keep(last && !call.in_place ? dst() : sum).count_at(block);
  if (s > 2) in.after(3).after(4);  // step s-2 has been sent, and all before it by turns
  emit(in);
  if (!last) emit(Build(call).take(sum).send(right, s).count_at(block).stream_after(1));
}

}  // namespace

std::uint32_t reduce_scatterv_ring_steps(const Call& call) { return steps_for(rounds_of(call), 2); }

void reduce_scatterv_ring_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 2, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
