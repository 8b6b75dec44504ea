// Ring all-gather: every block travels once around the ring.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005; ACCL section IV.E. Cost: (P-1) alpha + (P-1) n beta, n bytes a block.
//
// Each rank puts its own block into its place and sends it right, then keeps each block that comes from
// the left and passes it on in the same move. Each place of dst is written once and never read again,
// so there is no dependency: what orders the moves is the arrival from the left.
#include "collectives/allgather/allgather.hpp"
#include "collectives/build.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t allgather_ring_steps(const Call& call) { return call.size; }

void allgather_ring_step(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t size = call.size;
  if (size == 1) {
    if (!call.in_place) emit(Build(call).take(input(call)).keep(dst()).count(call.count));
    return;
  }
  const std::uint64_t offset = minus(call.rank, s, size) * call.count * element_bytes(call);

  Build move(call);
  move.count(call.count);
  if (s == 0) {
    move.take(input(call, offset));
  } else {
    move.arrive(minus(call.rank, 1, size), s - 1);
  }
  if (s > 0 || !call.in_place) move.keep(dst(offset));
  if (s < size - 1) move.send(plus(call.rank, 1, size), s);
  emit(move);
}

}  // namespace unisono::collectives
