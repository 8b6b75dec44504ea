// Linear reduce-scatterv: a linear reduction to each rank, one after the other, in rank order.
//
// Source: folklore. Cost: P alpha + N beta, N bytes in all, (P-1) m gamma, m bytes in the largest block.
//
// Round b is the reduction of block b to rank b. All others send it their block b; it folds those of the
// ranks above onto its own, rising, and then those below from the left, falling, so operands stay in
// rank order. Sends wait for nothing and folds for no send, so the round that is furthest behind
// can always end, and the window, which spans 32 rounds or half as many, never closes a circle.
//
// In place the result gathers in scratch until all blocks have been sent.
#include "collectives/build.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"
#include "collectives/reduce_scatterv/layout.hpp"
#include "collectives/reduce_scatterv/reduce_scatterv.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint64_t reduce_scatterv_linear_scratch_bytes(const Call& call) { return call.in_place ? largest_block(call) : 0; }

namespace {

/// The last round delivers in place.
std::uint32_t rounds_of(const Call& call) { return call.size + 1; }

void fold(const Call& call, Emit& emit) {
  const std::uint32_t rank = call.rank;
  const std::uint32_t above = call.size - 1 - rank;
  const Place own = block_of(call, rank);
  const Place result = result_of(call);
  if (above != 0 || rank == 0) {
    Build move(call);
    move.take(own).keep(result).count_at(rank);
    arrive_from(move, emit, above, rank, [=](std::uint32_t i) { return rank + 1 + i; });
    emit(move);
  }
  if (rank != 0) {
    Build move(call);
    move.take(above != 0 ? result : own).arrival_first().keep(result).count_at(rank);
    arrive_from(move, emit, rank, rank, [=](std::uint32_t i) { return rank - 1 - i; });
    if (above != 0) move.stream_after(1);
    emit(move);
  }
}

void round_of(const Call& call, std::uint32_t b, Emit& emit) {
  if (b == call.size) {
    deliver(call, emit);
  } else if (b == call.rank) {
    fold(call, emit);
  } else {
    emit(Build(call).take(block_of(call, b)).send(b, b).count_at(b));
  }
}

}  // namespace

std::uint32_t reduce_scatterv_linear_steps(const Call& call) { return steps_for(rounds_of(call), 2); }

void reduce_scatterv_linear_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 2, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
