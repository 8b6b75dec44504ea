// One-shot all-reduce: everybody sends everybody the whole vector, each in a move of its own, and folds what comes.
//
// Source: the one-round exchange of Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997, section 2 (P-1 ports).
// Cost: alpha + (P-1) n beta + (P-1) n gamma.
//
// As the flat all-reduce, which sends to all in one move. Engines in hardware hand out the moves of a program faster
// than the peers of a list, and begin with the ranks behind them instead of with rank 0. The message of a rank to
// itself puts its own vector at its place in the fold. In place the fold goes through scratch: dst may be overwritten
// only when it has been sent, and a send may last until its receiver listens. The first fold must stand in the window
// with all sends.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/build.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool allreduce_one_shot_admits(const Call& call) { return call.size < kWindow; }

std::uint32_t allreduce_one_shot_steps(const Call& call) {
  if (call.size == 1) return call.in_place ? 0 : 1;
  return steps_for(call.size + (call.in_place ? 2 : 1));
}

void allreduce_one_shot_step(const Call& call, std::uint32_t step, Emit& emit) {
  const std::uint32_t size = call.size;
  if (size == 1) {
    emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  each_round(step, size + (call.in_place ? 2 : 1), 1, [&](std::uint32_t i) {
    Build move(call);
    move.count(call.count);
    if (i < size) {  // to itself last
      emit(move.take(input(call)).send(plus(call.rank, i + 1, size), 0));
    } else if (i == size) {
      arrive_from(move, emit, size, 0, [](std::uint32_t rank) { return rank; });
      emit(move.keep(call.in_place ? scratch() : dst()));
    } else {
      emit(move.take(scratch()).keep(dst()).after_all(size + 1));
    }
  });
}

}  // namespace unisono::collectives
