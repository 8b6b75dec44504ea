// One-shot scan: everybody sends its vector to all ranks behind it, and folds what comes from those before it.
//
// Source: the one-round exchange of Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997, section 2 (P-1 ports).
// Cost: alpha + (P-1) n beta + (P-1) n gamma.
//
// The nearest rank is sent to first. A rank folds the others from the left onto its own operand, falling, so operands
// stand in rank order. In place the fold overwrites what is sent, so it waits for the sends; the last rank has none,
// the one before it waits for the last one only, and so on.
#include "collectives/build.hpp"
#include "collectives/peers.hpp"
#include "collectives/powers.hpp"
#include "collectives/scan/scan.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

bool folds(const Call& call) { return call.rank > 0 || !call.in_place; }

}  // namespace

bool scan_one_shot_admits(const Call& call) { return call.size <= kWindow; }

std::uint32_t scan_one_shot_steps(const Call& call) {
  return steps_for(call.size - 1 - call.rank + (folds(call) ? 1 : 0));
}

void scan_one_shot_step(const Call& call, std::uint32_t step, Emit& emit) {
  const std::uint32_t sends = call.size - 1 - call.rank;
  each_round(step, sends + (folds(call) ? 1 : 0), 1, [&](std::uint32_t i) {
    Build move(call);
    move.take(input(call)).count(call.count);
    if (i < sends) {
      emit(move.send(call.rank + 1 + i, 0));
      return;
    }
    arrive_from(move, emit, call.rank, 0, [&](std::uint32_t before) { return call.rank - 1 - before; });
    emit(move.arrival_first(call.rank > 0).keep(dst()).after_all(call.in_place ? sends : 0));
  });
}

}  // namespace unisono::collectives
