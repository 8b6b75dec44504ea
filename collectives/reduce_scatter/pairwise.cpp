// Pairwise reduce-scatter: each block goes straight from every rank to the one that wants it.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005. Cost: (P-1) alpha + (P-1) n beta + (P-1) n gamma, n bytes a block.
//
// In step s rank r sends block r+s to rank r+s and adds block r of rank r-s to its sum. Sends read
// the input only and wait for nothing. The sum is one place in memory, so each addition waits, element
// by element, for the one before it; that is the only order, and arrivals never wait for sends.
//
// In place the sum gathers on block r of dst, which no send reads, and the last addition delivers it
// to the begin of dst. Block 0 of the input stands there until it has been sent to rank 0 (step P-r),
// so the last addition waits for that send. Rank 0, which receives it, waits for no send of its own.
#include "collectives/build.hpp"
#include "collectives/powers.hpp"
#include "collectives/reduce_scatter/reduce_scatter.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

std::uint32_t rounds_of(const Call& call) { return call.size == 1 ? 1 : call.size - 1; }

void round_of(const Call& call, std::uint32_t step, Emit& emit) {
  const std::uint32_t size = call.size;
  if (size == 1) {
    if (!call.in_place) emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  const std::uint32_t s = step + 1;
  const std::uint32_t last = size - 1;
  const std::uint64_t block = call.count * element_bytes(call);
  const std::uint32_t to = plus(call.rank, s, size);
  const std::uint32_t from = minus(call.rank, s, size);
  const Place own = input(call) + call.rank * block;
  const Place sum = call.in_place ? own : dst();

  emit(Build(call).take(input(call) + to * block).send(to, s).count(call.count));

  Build add(call);
  add.take(s == 1 ? own : sum).arrive(from, s).keep(s == last ? dst() : sum).count(call.count);
  if (s > 1) add.stream_after(2);
  // The send of step P-r lies 2(s - (P-r)) + 1 moves back.
  if (s == last && call.in_place && call.rank > 0) add.after(2 * (call.rank - 1) + 1);
  emit(add);
}

}  // namespace

std::uint32_t reduce_scatter_pairwise_steps(const Call& call) { return steps_for(rounds_of(call), 2); }

void reduce_scatter_pairwise_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 2, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
