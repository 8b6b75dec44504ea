// Pairwise reduce-scatterv: each block goes straight from every rank to the one that wants it.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005 (its pairwise reduce-scatter), with a count per rank. Cost: (P-1) alpha +
// (P-1) m beta + (P-1) m gamma, m bytes in the largest block.
//
// In step s rank r sends block r+s to rank r+s and adds block r of rank r-s to its sum. Sends read the
// input only and wait for nothing. The sum is one place in memory, so each addition waits, element by
// element, for the one before it; that is the only order, and arrivals never wait for sends. All ranks
// know all counts, so an empty block is neither sent nor awaited.
//
// In place the sum gathers in scratch; its copy to the begin of dst is the last move and waits for all
// others, of which the sends wait for arrivals of other ranks only, never for such a copy.
#include "collectives/build.hpp"
#include "collectives/powers.hpp"
#include "collectives/reduce_scatterv/layout.hpp"
#include "collectives/reduce_scatterv/reduce_scatterv.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint64_t reduce_scatterv_pairwise_scratch_bytes(const Call& call) {
  return call.in_place ? largest_block(call) : 0;
}

namespace {

/// Round 0 copies the block if there is nobody else; the last one delivers.
std::uint32_t rounds_of(const Call& call) { return call.size + 1; }

void round_of(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t size = call.size;
  if (s == size) {
    deliver(call, emit);
    return;
  }
  const Place own = block_of(call, call.rank);
  const Place sum = result_of(call);
  if (s == 0) {
    if (size == 1) emit(Build(call).take(own).keep(sum).count_at(call.rank));
    return;
  }
  const std::uint32_t to = plus(call.rank, s, size);
  const std::uint32_t from = minus(call.rank, s, size);
  emit(Build(call).take(block_of(call, to)).send(to, s).count_at(to));
  Build add(call);
  add.take(s == 1 ? own : sum).arrive(from, s).keep(sum).count_at(call.rank);
  if (s > 1) add.stream_after(2);
  emit(add);
}

}  // namespace

std::uint32_t reduce_scatterv_pairwise_steps(const Call& call) { return steps_for(rounds_of(call), 2); }

void reduce_scatterv_pairwise_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 2, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
