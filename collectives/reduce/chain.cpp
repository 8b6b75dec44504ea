// Pipelined chain reduction.
//
// Source: Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster
// Computing 2007 (pipeline). Cost with S segments: (P-1) alpha + (1 + (P-2)/S) n (beta + gamma).
//
// The ranks form a line that ends in the root: root-1 (the last, counted from the root) sends to its
// predecessor, and so on. Each adds its operand to what arrives and sends the sum on, in one move;
// nothing to order. Ranks are combined counted from the root, so in rank order only for root 0.
#include "collectives/reduce/reduce.hpp"
#include "collectives/reduce/sides.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t reduce_chain_steps(const Call& /*call*/) { return 1; }

void reduce_chain_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  const std::uint32_t next = plus(call.rank, 1, call.size);
  const bool is_root = call.rank == call.root;
  const bool is_last = next == call.root;
  if (is_root && is_last && call.in_place) return;
  Build move(call);
  move.take(reduce_input(call)).count(call.count);
  if (!is_last) move.arrive(next, 0);
  if (is_root) {
    move.keep(dst());
  } else {
    move.send(minus(call.rank, 1, call.size), 0);
  }
  emit(move);
}

}  // namespace unisono::collectives
