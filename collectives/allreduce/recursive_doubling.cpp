// Recursive doubling all-reduce, for any number of ranks.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005. Cost: log2(P) (alpha + n beta + n gamma); if P is no power of two, folding adds
// 2 alpha + 2 n beta + n gamma.
//
// In round k partners at distance 2^k exchange their partial sums, which then cover 2^(k+1) consecutive
// ranks. doubling.hpp explains buffers and dependencies; this is its case of groups of one.
#include "collectives/allreduce/allreduce.hpp"
#include "collectives/allreduce/doubling.hpp"

namespace unisono::collectives {

std::uint32_t allreduce_recursive_doubling_steps(const Call& call) { return build::Doubling(call).steps(); }

void allreduce_recursive_doubling_step(const Call& call, std::uint32_t s, Emit& emit) {
  build::Doubling(call).step(s, emit);
}

std::uint64_t allreduce_recursive_doubling_scratch_bytes(const Call& call) {
  return build::Doubling(call).scratch_bytes();
}

}  // namespace unisono::collectives
