// Recursive doubling all-gather, for a power of two of ranks.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005. Cost: log2(P) alpha + (P-1) n beta, n bytes a block.
//
// In round k a rank has the 2^k blocks of its group of 2^k, sends them to its partner at distance 2^k
// and receives the partner's. The first send also puts the rank's own block into its place. A send
// waits for all arrivals before it and for that first move; arrivals wait for nothing (each place of
// dst is written once), so no two partners wait for each other.
#include "collectives/allgather/allgather.hpp"
#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool allgather_recursive_doubling_admits(const Call& call) { return is_power_of_two(call.size); }

namespace {

std::uint32_t rounds_of(const Call& call) { return call.size == 1 ? 1 : log2_floor(call.size); }

void round_of(const Call& call, std::uint32_t k, Emit& emit) {
  const std::uint64_t block = call.count * element_bytes(call);
  if (call.size == 1) {
    if (!call.in_place) emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  const std::uint32_t distance = std::uint32_t{1} << k;
  const std::uint32_t partner = call.rank ^ distance;
  const std::uint32_t mine = call.rank & ~(distance - 1);
  const std::uint32_t theirs = partner & ~(distance - 1);

  Build send(call);
  send.send(partner, k).count(distance * call.count);
  if (k == 0) {
    send.take(input(call, call.rank * block));
    if (!call.in_place) send.keep(dst(call.rank * block));
  } else {
    send.take(dst(mine * block)).after(2 * k);                    // own block in its place
    for (std::uint32_t j = 0; j < k; ++j) send.after(2 * j + 1);  // all arrivals
  }
  emit(send);
  emit(Build(call).arrive(partner, k).keep(dst(theirs * block)).count(distance * call.count));
}

}  // namespace

std::uint32_t allgather_recursive_doubling_steps(const Call& call) { return steps_for(rounds_of(call), 2); }

void allgather_recursive_doubling_step(const Call& call, std::uint32_t step, Emit& emit) {
  each_round(step, rounds_of(call), 2, [&](std::uint32_t round) { round_of(call, round, emit); });
}

}  // namespace unisono::collectives
