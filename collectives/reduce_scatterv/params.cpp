// Params of reduce-scatterv, the same for all its algorithms.
#include "collectives/reduce_scatterv/reduce_scatterv.hpp"
#include "collectives/vectors.hpp"

namespace unisono::collectives {

bool reduce_scatterv_admits(const Call& call) { return call.count != kUnknownCount; }

std::uint32_t reduce_scatterv_params_words(const Call& call) { return 2 * call.size; }

void reduce_scatterv_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words) {
  build::fill_layout(call, arguments.recv_counts, arguments.recv_displacements, words);
}

}  // namespace unisono::collectives
