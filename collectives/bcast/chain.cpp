// Pipelined chain broadcast.
//
// Source: Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster
// Computing 2007 (pipeline). Cost with S segments: (P-1) alpha + (1 + (P-2)/S) n beta.
//
// The ranks form a line from the root on. One move a rank stores what arrives and passes it on; the
// engine's segments make the pipeline. Nothing to order.
#include "collectives/bcast/bcast.hpp"
#include "collectives/build.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t bcast_chain_steps(const Call& call) { return call.size == 1 ? 0 : 1; }

void bcast_chain_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const std::uint32_t next = plus(call.rank, 1, call.size);
  Build move(call);
  move.count(call.count);
  if (call.rank == call.root) {
    move.take(dst());
  } else {
    move.arrive(minus(call.rank, 1, call.size), 0).keep(dst());
  }
  if (next != call.root) move.send(next, 0);
  emit(move);
}

}  // namespace unisono::collectives
