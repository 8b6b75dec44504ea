// Params of all-to-allv, the same for all its algorithms.
#include <cstddef>

#include "collectives/alltoallv/alltoallv.hpp"
#include "collectives/vectors.hpp"

namespace unisono::collectives {

std::uint32_t alltoallv_params_words(const Call& call) { return 4 * call.size; }

void alltoallv_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words) {
  const bool same = call.in_place;
  build::fill_layout(call, same ? arguments.recv_counts : arguments.send_counts,
                     same ? arguments.recv_displacements : arguments.send_displacements, words);
  build::fill_layout(call, arguments.recv_counts, arguments.recv_displacements, words + std::size_t{2} * call.size);
}

}  // namespace unisono::collectives
