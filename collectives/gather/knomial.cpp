// K-nomial gather: subtrees collect their blocks and hand them up.
//
// Source: the k-nomial tree of MPICH and UCC (Thakur, Rabenseifner and Gropp, IJHPCA 2005, is its case k = 2). Cost:
// ceil(log_k P) (k-1) alpha + (P-1) n beta, n bytes a block; the messages of a level overlap.
//
// As binomial gather, with up to k-1 children on each level: fewer times that a block is passed on, more messages at a
// node. tree.hpp has the moves.
#include "collectives/knomial.hpp"

#include "collectives/gather/gather.hpp"
#include "collectives/gather/tree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint64_t gather_knomial_scratch_bytes(const Call& call) { return gather_tree_scratch_bytes<KnomialSubtree>(call); }

std::uint32_t gather_knomial_steps(const Call& call) { return gather_tree_steps<KnomialSubtree>(call); }

void gather_knomial_step(const Call& call, std::uint32_t step, Emit& emit) {
  gather_tree_step<KnomialSubtree>(call, step, emit);
}

}  // namespace unisono::collectives
