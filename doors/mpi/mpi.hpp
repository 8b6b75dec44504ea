// The MPI below: its header, with its functions visible, for some of them are defined here.
#pragma once

#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop
