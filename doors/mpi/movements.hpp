// Collectives of MPI that move elements, as operations. Each fills in the operation, and returns false where the call
// is the MPI's own, which then finds its errors, too. What travels is bytes, for ranks may describe the same elements
// by different datatypes.
#pragma once

#include "doors/mpi/mpi.hpp"
#include "doors/mpi/operation.hpp"

namespace unisono::mpi {

bool prepare_barrier(Operation& operation);
bool prepare_bcast(Operation& operation, void* data, int count, MPI_Datatype type, int root);

/// Elements of a buffer: one block, or equal blocks, as the collective has it.
struct Elements {
  const void* data;
  int count;
  MPI_Datatype type;
};
/// Blocks of different lengths; displacements count extents of the datatype.
struct Blocks {
  const void* data;
  const int* counts;
  const int* displacements;
  MPI_Datatype type;
};
/// Blocks of different datatypes; displacements are bytes.
struct TypedBlocks {
  const void* data;
  const int* counts;
  const int* displacements;
  const MPI_Datatype* types;
};

bool prepare_allgather(Operation& operation, const Elements& send, const Elements& receive);
bool prepare_allgatherv(Operation& operation, const Elements& send, const Blocks& receive);
bool prepare_gather(Operation& operation, const Elements& send, const Elements& receive, int root);
bool prepare_gatherv(Operation& operation, const Elements& send, const Blocks& receive, int root);
bool prepare_scatter(Operation& operation, const Elements& send, const Elements& receive, int root);
bool prepare_scatterv(Operation& operation, const Blocks& send, const Elements& receive, int root);
bool prepare_alltoall(Operation& operation, const Elements& send, const Elements& receive);
bool prepare_alltoallv(Operation& operation, const Blocks& send, const Blocks& receive);
bool prepare_alltoallw(Operation& operation, const TypedBlocks& send, const TypedBlocks& receive);

}  // namespace unisono::mpi
