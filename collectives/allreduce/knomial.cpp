// All-reduce as a reduction to rank 0 and a broadcast from it, over one k-nomial tree.
//
// Source: the k-nomial tree of MPICH and UCC. Cost: 2 ceil(log_k P) (alpha + (k-1) n beta) + ceil(log_k P) (k-1) n
// gamma; segments stream through the tree.
//
// As reduce_bcast, which is its case k = 2. tree.hpp has the moves.
#include "collectives/knomial.hpp"

#include "collectives/allreduce/allreduce.hpp"
#include "collectives/allreduce/tree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t allreduce_knomial_steps(const Call& /*call*/) { return 1; }

void allreduce_knomial_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  allreduce_over_tree<KnomialSubtree>(call, emit);
}

}  // namespace unisono::collectives
