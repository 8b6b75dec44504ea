// Linear exclusive scan.
//
// Source: the definition (MPI 4.0 section 5.11). Cost with S segments:
// (P-1) alpha + (1 + (P-2)/S) n (beta + gamma).
//
// What arrives from the left is this rank's result. One move keeps it, the next puts this rank's
// operand to its right and sends the sum on, element by element behind the first (segment dependency).
// In place the operand stands where the result goes, so a copy of it is made first, while the ranks
// before are still at work; the result follows the copy element by element.
#include "collectives/build.hpp"
#include "collectives/exscan/exscan.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

// Whether the rank needs its operand after its result has begun to arrive.
constexpr bool copies_operand(const Call& call) { return call.in_place && call.rank > 0 && call.rank + 1 < call.size; }

}  // namespace

std::uint32_t exscan_linear_steps(const Call& call) { return call.size == 1 ? 0 : 1; }

std::uint64_t exscan_linear_scratch_bytes(const Call& call) {
  return copies_operand(call) ? call.count * element_bytes(call) : 0;
}

void exscan_linear_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const bool last = call.rank + 1 == call.size;
  if (call.rank == 0) {
    emit(Build(call).take(input(call)).send(1, 0).count(call.count));
    return;
  }
  const bool copies = copies_operand(call);
  if (copies) emit(Build(call).take(dst()).keep(scratch()).count(call.count));
  emit(Build(call).arrive(call.rank - 1, 0).keep(dst()).count(call.count).stream_after(copies ? 1 : 0));
  if (last) return;
  emit(Build(call)
           .take(copies ? scratch() : src())
           .with(dst())
           .arrival_first()
           .send(call.rank + 1, 0)
           .count(call.count)
           .stream_after(1));
}

}  // namespace unisono::collectives
