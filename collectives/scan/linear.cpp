// Linear scan.
//
// Source: the definition (MPI 4.0 section 5.11). Cost with S segments:
// (P-1) alpha + (1 + (P-2)/S) n (beta + gamma).
//
// What arrives from the left is the sum of all lower ranks; it is the left operand. One move a rank
// adds this rank's part, keeps the sum and passes it on; nothing to order.
#include "collectives/build.hpp"
#include "collectives/scan/scan.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t scan_linear_steps(const Call& /*call*/) { return 1; }

void scan_linear_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const bool first = call.rank == 0;
  const bool last = call.rank + 1 == call.size;
  if (first && last && call.in_place) return;
  Build move(call);
  move.take(input(call)).count(call.count);
  if (!first) move.arrive(call.rank - 1, 0).arrival_first();
  if (!first || !call.in_place) move.keep(dst());
  if (!last) move.send(call.rank + 1, 0);
  emit(move);
}

}  // namespace unisono::collectives
