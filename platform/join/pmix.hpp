// PMIx: what the processes of Open MPI's mpirun and of `srun --mpi=pmix` speak with their launcher, by the library
// libpmix, which is loaded only where they were started so.
#pragma once

#include <memory>

#include "platform/join/job.hpp"
#include "platform/join/store.hpp"

namespace unisono::join {

/// Whether the library is there. Loads it.
bool pmix_loads();

/// The store of this process's launcher. Fills in the job's size and this process's local rank, or throws
/// Error(kBootstrap) if rank or size are others than the environment has said. PMIx is initialised until the process
/// ends; it counts its users, so an MPI library in the same process has it as well.
std::unique_ptr<Store> open_pmix(JobEnvironment& environment);

}  // namespace unisono::join
