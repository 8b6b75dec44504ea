// Binomial gather: subtrees collect their blocks and hand them up.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005. Cost: ceil(log2 P) alpha + (P-1) n beta, n bytes a block.
//
// tree.hpp has the moves.
#include "collectives/gather/gather.hpp"
#include "collectives/gather/tree.hpp"
#include "collectives/subtree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint64_t gather_binomial_scratch_bytes(const Call& call) { return gather_tree_scratch_bytes<Subtree>(call); }

std::uint32_t gather_binomial_steps(const Call& call) { return gather_tree_steps<Subtree>(call); }

void gather_binomial_step(const Call& call, std::uint32_t step, Emit& emit) {
  gather_tree_step<Subtree>(call, step, emit);
}

}  // namespace unisono::collectives
