// The job of Unisono under a program of MPI: joined behind MPI_Init, left before MPI_Finalize.
#pragma once

#include "doors/mpi/mpi.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

/// A job of the ranks of MPI_COMM_WORLD.
struct Job {
  unisono_context* context = nullptr;
  unisono_communicator* world = nullptr;
  int size = 0;
  MPI_Group group = MPI_GROUP_NULL;  ///< of MPI_COMM_WORLD
};

/// Joins, on all ranks of MPI_COMM_WORLD or on none: says on standard error why not. Collective. UNISONO_MPI=off in the
/// environment of all ranks says that everything is the MPI's own. While a thread waits in Unisono the MPI below makes
/// progress.
void begin();
/// Leaves the job, if there is one. Collective.
void end();
/// The job; null if there is none, so that everything is the MPI's own.
const Job* job();

}  // namespace unisono::mpi
