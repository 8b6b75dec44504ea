// Ring all-reduce: reduce-scatter around the ring, then all-gather around the ring.
//
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// JPDC 2009; ACCL section IV.E. Cost: 2(P-1) alpha + 2 n (P-1)/P beta + n (P-1)/P gamma.
//
// The vector is cut into P chunks. A chunk starts its journey at the rank of its number and travels
// right; each rank adds its own part as the chunk passes: one move that takes the rank's chunk, adds
// what arrives from the left and sends the sum right. After P-1 hops the chunk is complete; that move
// also keeps it. On the second round each rank keeps the chunk and passes it on, in one move too.
// There is no scratch and no dependency between moves: what orders them is the arrival from the left.
// In place this holds as well: a chunk of dst is overwritten only by the finished chunk, which
// contains this rank's part and so was sent after it had been read.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/build.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t allreduce_ring_steps(const Call& call) { return call.size == 1 ? 1 : 2 * call.size - 1; }

void allreduce_ring_step(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t size = call.size;
  if (size == 1) {
    if (!call.in_place) emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  const std::uint32_t right = plus(call.rank, 1, size);
  const std::uint32_t left = minus(call.rank, 1, size);
  const Split split{call.count, size};
  const std::uint32_t chunk = minus(call.rank, s % size, size);
  const std::uint64_t offset = split.begin(chunk) * element_bytes(call);

  Build move(call);
  move.count(split.count(chunk));
  if (s > 0) move.arrive(left, s - 1);            // every step but the first listens to the left
  if (s < size) move.take(input(call) + offset);  // first round: add this rank's part
  if (s >= size - 1) move.keep(dst(offset));      // the chunk is complete from step P-1 on
  if (s < 2 * size - 2) move.send(right, s);      // every step but the last speaks to the right
  emit(move);
}

}  // namespace unisono::collectives
