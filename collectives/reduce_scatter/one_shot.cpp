// One-shot reduce-scatter: everybody sends everybody its block, and folds what comes.
//
// Source: the one-round exchange of Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997, section 2 (P-1 ports).
// Cost: alpha + (P-1) n beta + (P-1) n gamma, n bytes a block.
//
// As pairwise, which adds one block after the other to its sum; here one move folds all, in rank order. The message of
// a rank to itself puts its own block at its place in the fold. The fold must stand in the window with all sends.
//
// In place the result goes to the begin of dst. Block 0 of the input stands there until it has been sent, so the fold
// waits for that send. Rank 0, which receives it, folds onto its own block and waits for none.
#include "collectives/build.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"
#include "collectives/reduce_scatter/reduce_scatter.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool reduce_scatter_one_shot_admits(const Call& call) { return call.size < kWindow; }

std::uint32_t reduce_scatter_one_shot_steps(const Call& call) {
  if (call.size == 1) return call.in_place ? 0 : 1;
  return steps_for(call.size + 1);
}

void reduce_scatter_one_shot_step(const Call& call, std::uint32_t step, Emit& emit) {
  const std::uint32_t size = call.size;
  const std::uint64_t block = call.count * element_bytes(call);
  if (size == 1) {
    emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  each_round(step, size + 1, 1, [&](std::uint32_t i) {
    Build move(call);
    move.count(call.count);
    if (i < size) {  // to itself last
      const std::uint32_t to = plus(call.rank, i + 1, size);
      emit(move.take(input(call) + to * block).send(to, 0));
      return;
    }
    arrive_from(move, emit, size, 0, [](std::uint32_t rank) { return rank; });
    // Block 0 is sent by move P-1-rank.
    emit(move.keep(dst()).after(call.in_place && call.rank > 0 ? call.rank + 1 : 0));
  });
}

}  // namespace unisono::collectives
