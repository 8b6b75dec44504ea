// Binomial scatter: the mirror image of binomial gather.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005. Cost: ceil(log2 P) alpha + (P-1) n beta, n bytes a block.
//
// tree.hpp has the moves.
#include "collectives/scatter/scatter.hpp"
#include "collectives/scatter/tree.hpp"
#include "collectives/subtree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint64_t scatter_binomial_scratch_bytes(const Call& call) { return scatter_tree_scratch_bytes<Subtree>(call); }

std::uint32_t scatter_binomial_steps(const Call& call) { return scatter_tree_steps<Subtree>(call); }

void scatter_binomial_step(const Call& call, std::uint32_t step, Emit& emit) {
  scatter_tree_step<Subtree>(call, step, emit);
}

}  // namespace unisono::collectives
