// Calls for the model: the programs of all ranks, and where they stand in a network.
#pragma once

#include <cstdint>
#include <string>

#include "collectives/algorithm.hpp"
#include "core/call.hpp"
#include "sim/model/model.hpp"
#include "sim/network/topology.hpp"

namespace unisono::sim {

/// The call of so many bytes, with root 0: of the vector, or of one rank's block. Reductions are sums. Throws
/// Error(kInvalidArgument) for bytes that are no whole number of elements.
Call plain_call(Collective collective, std::uint32_t ranks, std::uint64_t bytes, Datatype dtype);

/// That call by an algorithm, each rank at the node of its number. An algorithm of switches runs over the tree that
/// lay_tree lays over the network's units, whose addresses follow. The network's `nodes` must be those of the ranks and
/// of units at nodes. Throws Error(kInvalidArgument) if the algorithm does not admit the call, or if there is no tree,
/// and says why.
ModelledCall call_of(const Topology& topology, const Algorithm& algorithm, Call call);

/// The same by names, with elements of fp32. `bytes`: of the vector; of scatter, gather, allgather, alltoall and
/// reduce_scatter, of all blocks together. Throws as well if there is no such algorithm.
ModelledCall call_of(const NetworkConfig& network, const std::string& collective, const std::string& algorithm,
                     std::uint32_t ranks, std::uint64_t bytes);

}  // namespace unisono::sim
