// K-nomial scatter: the mirror image of k-nomial gather.
//
// Source: the k-nomial tree of MPICH and UCC (Thakur, Rabenseifner and Gropp, IJHPCA 2005, is its case k = 2). Cost:
// ceil(log_k P) (k-1) alpha + (P-1) n beta, n bytes a block; the messages of a level overlap.
//
// As binomial scatter, with up to k-1 children on each level: fewer times that a block is passed on, more messages at a
// node. tree.hpp has the moves.
#include "collectives/knomial.hpp"

#include "collectives/scatter/scatter.hpp"
#include "collectives/scatter/tree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint64_t scatter_knomial_scratch_bytes(const Call& call) {
  return scatter_tree_scratch_bytes<KnomialSubtree>(call);
}

std::uint32_t scatter_knomial_steps(const Call& call) { return scatter_tree_steps<KnomialSubtree>(call); }

void scatter_knomial_step(const Call& call, std::uint32_t step, Emit& emit) {
  scatter_tree_step<KnomialSubtree>(call, step, emit);
}

}  // namespace unisono::collectives
