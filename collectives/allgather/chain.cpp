// Chain all-gather: one pipelined broadcast of each block, in the order of the ranks.
//
// Source: the pipeline of Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster
// Computing 2007, from each rank in turn. Cost: (P-1) alpha + (P + 1) n beta, n bytes a block.
//
// Block b goes from rank b to the right, as far as the rank left of b. A rank keeps the blocks in their order, 0 to
// P-1, and passes each on in the same move; so it goes through dst once, which is what streams of kernels need in
// hardware. Every neighbour has the blocks in that order, too, and a block's line has two ends: what waits for room to
// the right waits for an earlier block, or for the end of its own line. Nothing to order.
#include "collectives/allgather/allgather.hpp"
#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

void round_of(const Call& call, std::uint32_t block, Emit& emit) {
  const std::uint64_t offset = block * call.count * element_bytes(call);
  const std::uint32_t right = plus(call.rank, 1, call.size);
  const bool own = block == call.rank;
  if (own && call.in_place && call.size == 1) return;
  Build move(call);
  move.count(call.count);
  if (own) {
    move.take(input(call, offset));
    if (!call.in_place) move.keep(dst(offset));
  } else {
    move.arrive(minus(call.rank, 1, call.size), block).keep(dst(offset));
  }
  if (right != block) move.send(right, block);
  emit(move);
}

}  // namespace

std::uint32_t allgather_chain_steps(const Call& call) { return steps_for(call.size); }

void allgather_chain_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, call.size, 1, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
