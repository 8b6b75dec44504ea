// Binomial broadcast.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005. Cost: ceil(log2 P) (alpha + n beta); segments stream, so for large vectors the
// depth costs a segment a level.
//
// tree.hpp has the one move of a rank.
#include "collectives/bcast/bcast.hpp"
#include "collectives/bcast/tree.hpp"
#include "collectives/subtree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t bcast_binomial_steps(const Call& call) { return call.size == 1 ? 0 : 1; }

void bcast_binomial_step(const Call& call, std::uint32_t /*s*/, Emit& emit) { bcast_over_tree<Subtree>(call, emit); }

}  // namespace unisono::collectives
