// The device of a rank whose job runs on devices: `unisono mpirun --platform rtl`.
#pragma once

namespace unisono::mpi {

/// Whether collectives are carried by devices, simulated ones included (UNISONO_PLATFORM), as of the first call.
bool on_devices();
/// Whether these are nodes of a simulated cluster.
bool in_simulated_time();

/// Gets this rank's end of the socket that leads to its device, from the launcher that UNISONO_DEVICE_AT names: a
/// process of MPI is no child of it, and inherits none. Does nothing where there is no such variable. Says on standard
/// error what went wrong, and returns false.
bool take_device(int rank);

}  // namespace unisono::mpi
