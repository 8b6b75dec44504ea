// One-shot exclusive scan: everybody sends its vector to all ranks behind it, and folds what comes from those before
// it.
//
// Source: the one-round exchange of Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997, section 2 (P-1 ports).
// Cost: alpha + (P-1) n beta + (P-1) n gamma.
//
// The nearest rank is sent to first. In place the fold overwrites what is sent, so it waits for the sends; the last
// rank has none, the one before it waits for the last one only, and so on.
#include "collectives/build.hpp"
#include "collectives/exscan/exscan.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

bool exscan_one_shot_admits(const Call& call) { return call.size <= kWindow; }

std::uint32_t exscan_one_shot_steps(const Call& call) {
  return steps_for(call.size - 1 - call.rank + (call.rank > 0 ? 1 : 0));
}

void exscan_one_shot_step(const Call& call, std::uint32_t step, Emit& emit) {
  const std::uint32_t sends = call.size - 1 - call.rank;
  each_round(step, sends + (call.rank > 0 ? 1 : 0), 1, [&](std::uint32_t i) {
    Build move(call);
    move.count(call.count);
    if (i < sends) {
      emit(move.take(input(call)).send(call.rank + 1 + i, 0));
      return;
    }
    arrive_from(move, emit, call.rank, 0, [](std::uint32_t rank) { return rank; });
    emit(move.keep(dst()).after_all(call.in_place ? sends : 0));
  });
}

}  // namespace unisono::collectives
