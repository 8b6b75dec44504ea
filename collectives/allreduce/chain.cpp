// Pipelined chain all-reduce: sums go down the line of ranks to rank 0, and the result comes back up.
//
// Source: the pipelines of Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster
// Computing 2007, one behind the other. Cost with S segments: 2 (P-1) alpha + (2 + 2 (P-2)/S) n beta + n gamma.
//
// Two moves a rank. Each goes through src or dst once, in order, and sends to one rank: what streams of kernels need
// in hardware. In place, dst is overwritten by the result, which contains this rank's operand and so was sent after
// that had been read. Nothing to order.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/build.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t allreduce_chain_steps(const Call& /*call*/) { return 1; }

void allreduce_chain_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  constexpr std::uint32_t kDown = 0;
  constexpr std::uint32_t kBack = 1;
  if (call.size == 1 && call.in_place) return;
  const std::uint32_t next = call.rank + 1;
  Build sum(call);
  sum.take(input(call)).count(call.count);
  if (next < call.size) sum.arrive(next, kDown);
  if (call.rank != 0) {
    emit(sum.send(call.rank - 1, kDown));
  } else {
    sum.keep(dst());
    if (next < call.size) sum.send(next, kBack);
    emit(sum);
    return;
  }
  Build result(call);
  result.arrive(call.rank - 1, kBack).keep(dst()).count(call.count);
  if (next < call.size) result.send(next, kBack);
  emit(result);
}

}  // namespace unisono::collectives
