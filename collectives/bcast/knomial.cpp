// K-nomial broadcast.
//
// Source: the k-nomial tree of MPICH and UCC (Thakur, Rabenseifner and Gropp, IJHPCA 2005, is its case k = 2). Cost:
// ceil(log_k P) (alpha + (k-1) n beta); segments stream.
//
// As binomial broadcast, with up to k-1 children on each level: fewer levels, more copies a level. tree.hpp has the one
// move of a rank.
#include "collectives/knomial.hpp"

#include "collectives/bcast/bcast.hpp"
#include "collectives/bcast/tree.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

std::uint32_t bcast_knomial_steps(const Call& call) { return call.size == 1 ? 0 : 1; }

void bcast_knomial_step(const Call& call, std::uint32_t /*s*/, Emit& emit) {
  bcast_over_tree<KnomialSubtree>(call, emit);
}

}  // namespace unisono::collectives
