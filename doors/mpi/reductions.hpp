// Reductions of MPI, as operations. Each fills in the operation, and returns false where the call is the MPI's own,
// which then finds its errors, too. Unisono computes what it has operator and datatype for; else the MPI's operator is
// called (fold.hpp).
#pragma once

#include "doors/mpi/mpi.hpp"
#include "doors/mpi/operation.hpp"

namespace unisono::mpi {

/// What is combined, and where the result goes; `send` may be MPI_IN_PLACE.
struct Operands {
  const void* send;
  void* receive;
  MPI_Datatype type;
  MPI_Op op;
};

/// All-reduce, scan and exclusive scan.
bool prepare_vectors(Operation& operation, unisono_collective collective, const Operands& operands, int count);
bool prepare_reduce(Operation& operation, const Operands& operands, int count, int root);
bool prepare_reduce_scatter(Operation& operation, const Operands& operands, const int* counts);
bool prepare_reduce_scatter_block(Operation& operation, const Operands& operands, int count);

}  // namespace unisono::mpi
