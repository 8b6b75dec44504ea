// Dissemination barrier.
//
// Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", International
// Journal of Parallel Programming 1988; for k-1 signals in a round Hoefler, Mehlan, Mietke and Rehm, "Fast
// barrier synchronization for InfiniBand", IPDPS 2006. Cost: ceil(log_k P) alpha, if a rank has k-1 ports; k is
// 2 if none is given.
//
// In round s a rank signals the ranks rank + j k^s, j = 1 .. k-1, and awaits the signals of rank - j k^s. A signal
// of round s is sent when those of all rounds before have arrived, so it stands for the k^s ranks that end with
// its sender; after the last round every rank has heard, directly or not, from all. The signals that are
// awaited depend on nothing, so no signal can wait for its receiver: signalling and awaiting in one
// move would lock, since each rank would then listen only after the rank to its right does.
#include "collectives/barrier/barrier.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"
#include "collectives/radix.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kUsualRadix = 2;

std::uint32_t rounds_of(const Call& call) { return log_ceil(call.size, radix_of(call, kUsualRadix)); }

void round_of(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t radix = radix_of(call, kUsualRadix);
  const std::uint32_t distance = power_of(radix, s);
  const std::uint32_t places = (call.size - 1) / distance;
  const std::uint32_t peers = places < radix - 1 ? places : radix - 1;
  Build signal(call);
  send_to(signal, emit, peers, s, [&](std::uint32_t i) { return plus(call.rank, (i + 1) * distance, call.size); });
  signal.signal();
  for (std::uint32_t back = 1; back < 2 * s; back += 2) signal.after(back);  // all signals awaited so far
  emit(signal);
  Build await(call);
  arrive_from(await, emit, peers, s, [&](std::uint32_t i) { return minus(call.rank, (i + 1) * distance, call.size); });
  emit(await.signal());
}

}  // namespace

std::uint32_t barrier_dissemination_steps(const Call& call) { return steps_for(rounds_of(call), 2); }

void barrier_dissemination_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 2, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
