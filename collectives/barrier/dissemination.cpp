// Dissemination barrier.
//
// Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", International
// Journal of Parallel Programming 1988. Cost: ceil(log2 P) alpha.
//
// In round k a rank signals rank + 2^k and awaits the signal of rank - 2^k. A signal of round k is sent
// when those of all rounds before have arrived, so it stands for the 2^k ranks that end with its
// sender; after the last round every rank has heard, directly or not, from all. The signals that are
// awaited depend on nothing, so no signal can wait for its receiver: signalling and awaiting in one
// move would lock, since each rank would then listen only after the rank to its right does.
#include "collectives/barrier/barrier.hpp"
#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

std::uint32_t rounds_of(const Call& call) { return log2_ceil(call.size); }

void round_of(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t distance = std::uint32_t{1} << s;
  Build signal(call);
  signal.send(plus(call.rank, distance, call.size), s).signal();
  for (std::uint32_t back = 1; back < 2 * s; back += 2) signal.after(back);  // all signals awaited so far
  emit(signal);
  emit(Build(call).arrive(minus(call.rank, distance, call.size), s).signal());
}

}  // namespace

std::uint32_t barrier_dissemination_steps(const Call& call) { return steps_for(rounds_of(call), 2); }

void barrier_dissemination_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 2, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
