// K-nomial reduction, in rank order for any root.
//
// Source: the k-nomial tree of MPICH and UCC (Thakur, Rabenseifner and Gropp, IJHPCA 2005, is its case k = 2). Cost:
// ceil(log_k P) (alpha + (k-1) n beta + (k-1) n gamma); segments stream.
//
// As binomial reduction, with up to k-1 children on each level: fewer levels, a larger fan-in. tree.hpp has the moves.
#include "collectives/knomial.hpp"

#include "collectives/reduce/reduce.hpp"
#include "collectives/reduce/tree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t reduce_knomial_steps(const Call& /*call*/) { return 1; }

void reduce_knomial_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  reduce_over_tree<KnomialSubtree>(call, emit);
}

}  // namespace unisono::collectives
