// Binomial reduction, in rank order for any root.
//
// Source: Thakur, Rabenseifner and Gropp, IJHPCA 2005. Cost: ceil(log2 P) (alpha + n beta + n gamma);
// segments stream, so for large vectors a level costs a segment.
//
// tree.hpp has the moves.
#include "collectives/reduce/reduce.hpp"
#include "collectives/reduce/tree.hpp"
#include "collectives/subtree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t reduce_binomial_steps(const Call& /*call*/) { return 1; }

void reduce_binomial_step(const Call& call, std::uint32_t /*s*/, Emit& emit) { reduce_over_tree<Subtree>(call, emit); }

}  // namespace unisono::collectives
