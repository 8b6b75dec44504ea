// All-reduce as a reduction to rank 0 and a broadcast from it, over one binomial tree.
//
// Source: Thakur, Rabenseifner and Gropp, IJHPCA 2005 (their first all-reduce).
// Cost: 2 ceil(log2 P) (alpha + n beta) + ceil(log2 P) n gamma; segments stream through the tree.
//
// tree.hpp has the moves.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/allreduce/tree.hpp"
#include "collectives/subtree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t allreduce_reduce_bcast_steps(const Call& /*call*/) { return 1; }

void allreduce_reduce_bcast_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  allreduce_over_tree<Subtree>(call, emit);
}

}  // namespace unisono::collectives
