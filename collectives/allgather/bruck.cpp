// Bruck's all-gather, for any number of ranks, without scratch and without its final rotation.
//
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications
// in multiport message-passing systems", IEEE TPDS 1997. Cost: ceil(log2 P) alpha + (P-1) n beta,
// n bytes a block, and one alpha more in a round whose blocks pass from P-1 to 0.
//
// Before round k rank r has the blocks r .. r+2^k-1 (mod P). It sends them (in the last round only as
// many as are missing) to rank r-2^k and receives as many from rank r+2^k. The original packs them in
// that order and rotates at the end. Here every block stands at once in its final place in dst: both
// ends of a message mean the same blocks, so both cut it at the same block 0 if it passes there, and
// the only price is a second message in such a round.
//
// A send waits for all arrivals before it and for the first move, which also puts the rank's own block
// into its place. Arrivals wait for nothing (each place of dst is written once), so nobody waits in a
// circle.
#include "collectives/allgather/allgather.hpp"
#include "collectives/build.hpp"
#include "collectives/doubling_blocks.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

std::uint32_t rounds_of(const Call& call) { return call.size == 1 ? 1 : log2_ceil(call.size); }

void round_of(const Call& call, std::uint32_t k, Emit& emit) {
  const std::uint32_t size = call.size;
  const std::uint64_t block = call.count * element_bytes(call);
  if (size == 1) {
    if (!call.in_place) emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  const std::uint32_t distance = std::uint32_t{1} << k;
  const std::uint32_t to = minus(call.rank, distance, size);
  const std::uint32_t from = plus(call.rank, distance, size);
  const DoublingBlocks given = DoublingBlocks::sent_by(call.rank, k, size);
  const DoublingBlocks taken = DoublingBlocks::taken_by(call.rank, k, size);

  Build low(call);
  low.send(to, 2 * k).count(given.before_wrap * call.count);
  if (k == 0) {
    low.take(input(call, call.rank * block));
    if (!call.in_place) low.keep(dst(call.rank * block));
  } else {
    low.take(dst(given.first * block));
    after_rounds(low, emit.moves(), call.rank, k, size, 0, 0);
  }
  emit(low);
  if (given.messages() == 2) {
    Build high(call);
    high.take(dst()).send(to, 2 * k + 1).count(given.after_wrap() * call.count);
    after_rounds(high, emit.moves(), call.rank, k, size, 0, 0);
    emit(high);
  }
  emit(Build(call).arrive(from, 2 * k).keep(dst(taken.first * block)).count(taken.before_wrap * call.count));
  if (taken.messages() == 2) {
    emit(Build(call).arrive(from, 2 * k + 1).keep(dst()).count(taken.after_wrap() * call.count));
  }
}

}  // namespace

std::uint32_t allgather_bruck_steps(const Call& call) { return steps_for(rounds_of(call), 4); }

void allgather_bruck_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 4, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
