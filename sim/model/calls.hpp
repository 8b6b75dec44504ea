// Calls for the model: the programs of all ranks, and where they stand in a network.
#pragma once

#include <cstdint>
#include <string>

#include "sim/model/model.hpp"

namespace unisono::sim {

/// `collective` by `algorithm` on so many ranks, each at the node of its number. `bytes`: of the vector; of scatter,
/// gather, allgather, alltoall and reduce_scatter, of all blocks together; elements are fp32, reductions are sums. An
/// algorithm of switches runs over the tree that lay_tree lays over the network's units. The network's `nodes` must be
/// those of the ranks and of units at nodes. Throws Error(kInvalidArgument) if there is no such algorithm, if it does
/// not admit the call, or if there is no tree, and says why.
ModelledCall call_of(const NetworkConfig& network, const std::string& collective, const std::string& algorithm,
                     std::uint32_t ranks, std::uint64_t bytes);

}  // namespace unisono::sim
