// Names of persistent collectives.
#pragma once

#include "doors/mpi/mpi.hpp"

// Open MPI 4.1 has them as an extension, by other names.
#ifdef OPEN_MPI
#pragma GCC visibility push(default)
#include <mpi-ext.h>
#pragma GCC visibility pop
#define PERSISTENT(name) MPIX_##name##_init
#define PERSISTENT_BELOW(name) PMPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#define PERSISTENT_BELOW(name) PMPI_##name##_init
#endif
