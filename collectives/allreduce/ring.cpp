// Ring all-reduce: reduce-scatter around the ring, then all-gather around the ring.
//
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// JPDC 2009; ACCL section IV.E. Cost: 2(P-1) alpha + 2 n (P-1)/P beta + n (P-1)/P gamma.
//
// The vector is cut into P chunks. A chunk starts its journey at the rank of its number and travels
// right; each rank adds its own part as the chunk passes. After P-1 hops the chunk is complete, and
// travels on for a second round, in which each rank keeps it.
//
// A step is two moves: one takes the chunk in, adds to it and keeps it in dst; the other follows it
// element by element (segment dependency) and sends it right. One move for both would close a circle:
// all messages come from one neighbour, so a rank listens to the next only when it has used the last
// up, and using it up would wait for the right neighbour to listen, all the way around. Taking in waits
// for nothing; no other dependency is needed. Sums on their way stand in the chunk of dst that they will
// fill, so there is no scratch: a chunk of dst is overwritten by the finished chunk only, each element of
// which contains this rank's part and so was sent after that had been read. In place this holds as well.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t rounds_of(const Call& call) { return call.size == 1 ? 1 : 2 * call.size - 1; }

}  // namespace

std::uint32_t allreduce_ring_steps(const Call& call) { return steps_for(rounds_of(call), 2); }

void allreduce_ring_step(const Call& call, std::uint32_t step, Emit& emit) {
  const std::uint32_t size = call.size;
  if (size == 1) {
    if (!call.in_place) emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  const std::uint32_t right = plus(call.rank, 1, size);
  const std::uint32_t left = minus(call.rank, 1, size);
  const Split split{call.count, size};
  const std::uint64_t element = element_bytes(call);

  each_round(step, rounds_of(call), 2, [&](std::uint32_t s) {
    const std::uint32_t chunk = minus(call.rank, s < size ? s : s - size, size);
    const std::uint64_t offset = split.begin(chunk) * element;
    const std::uint64_t count = split.count(chunk);
    if (s == 0) {
      emit(Build(call).take(input(call) + offset).send(right, 0).count(count));
      return;
    }
    Build in(call);
    in.arrive(left, s - 1).keep(dst(offset)).count(count);
    if (s < size) in.take(input(call) + offset);  // first round: add this rank's part
    emit(in);
    if (s < 2 * size - 2) emit(Build(call).take(dst(offset)).send(right, s).count(count).stream_after(1));
  });
}

}  // namespace unisono::collectives
