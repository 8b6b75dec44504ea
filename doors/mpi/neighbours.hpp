// Exchanges with neighbours of a communicator's topology, as operations.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "doors/mpi/mpi.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

class Operation;

/// Who is whose neighbour: the graph, and where the edges stand in MPI's lists, in which MPI_PROC_NULL has places, too.
struct Neighbours {
  Neighbours() = default;
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;
  ~Neighbours();

  unisono_graph* graph = nullptr;
  std::vector<std::size_t> sources;       ///< place of each edge that comes in
  std::vector<std::size_t> destinations;  ///< place of each edge that goes out
};

/// Those of a communicator with a topology; null if it has none, or Unisono cannot have it, which is the same on all
/// ranks. Collective over the communicator.
std::unique_ptr<Neighbours> neighbours_of(MPI_Comm comm, unisono_communicator* communicator);

/// Blocks of a list of neighbours, for all five functions; what a function has not is null, or the same for each.
struct NeighbourBlocks {
  const void* data;
  int count;          ///< of each block, where `counts` is null
  const int* counts;  ///< by neighbour
  /// In extents; null: one behind the other.
  const int* displacements;
  MPI_Datatype type;
  /// Of the function with datatypes by neighbour, with displacements in bytes; null in the others.
  const MPI_Datatype* types;
  const MPI_Aint* addresses;
};

/// Fill in the operation, and return false where the call is the MPI's own. `gathers`: one block goes to all.
bool prepare_neighbours(Operation& operation, const NeighbourBlocks& send, const NeighbourBlocks& receive,
                        bool gathers);

}  // namespace unisono::mpi
