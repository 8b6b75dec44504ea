// Ring reduce-scatter: a block travels once around the ring and collects every rank's part.
//
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// JPDC 2009 (its first half). Cost: (P-1) alpha + (P-1) n beta + (P-1) n gamma, n bytes a block.
//
// Block b starts at rank b+1 and travels right; each rank adds its own part as the block passes, in
// one move; after P-1 hops it reaches rank b complete. Nothing is stored on the way, so what orders
// the moves is the arrival from the left, and no dependency is needed.
//
// In place there is one hazard: the result goes to the begin of dst, where block 0 of the input
// stands. Rank r sends that block in step r-1, so the last move waits for that one. Nobody waits in a
// circle: step r-1 is received by step r of the right neighbour, which is the waiting last step only
// for r = P-1, whose neighbour 0 reads and writes block 0 in its last step alone and does not wait.
#include "collectives/build.hpp"
#include "collectives/reduce_scatter/reduce_scatter.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t reduce_scatter_ring_steps(const Call& call) { return call.size; }

void reduce_scatter_ring_step(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t size = call.size;
  if (size == 1) {
    if (!call.in_place) emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  const std::uint32_t block = minus(minus(call.rank, 1, size), s, size);
  const std::uint32_t last = size - 1;

  Build move(call);
  move.take(input(call) + block * call.count * element_bytes(call)).count(call.count);
  if (s > 0) move.arrive(minus(call.rank, 1, size), s - 1);
  if (s < last) move.send(plus(call.rank, 1, size), s);
  if (s == last) {
    move.keep(dst());
    if (call.in_place && call.rank > 0) move.after(size - call.rank);
  }
  emit(move);
}

}  // namespace unisono::collectives
