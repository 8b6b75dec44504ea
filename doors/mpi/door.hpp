// What Unisono has for a communicator of MPI.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "doors/mpi/mpi.hpp"
#include "doors/mpi/neighbours.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

/// Hangs on the communicator by an attribute, and goes with it when the last request on it has gone.
struct Door {
  unisono_communicator* communicator = nullptr;  ///< null: this communicator's calls are the MPI's own
  bool owned = false;                            ///< it is freed with the door
  int rank = 0;
  int size = 0;
  std::unique_ptr<Neighbours> neighbours;            ///< of a topology
  mutable std::atomic<int> users{1};                 ///< the communicator's attribute, and requests
  mutable std::atomic<std::uint32_t> comparable{0};  ///< calls so far that could be compared (report.hpp)
};

/// One user more, or less: the last one frees it.
void keep(const Door& door);
void drop(const Door& door);

/// Whether a door is made where there is none, which is collective over the communicator.
enum class Make : std::uint8_t { kNo, kYes };
/// The door of a communicator; null if its calls are the MPI's own: it has one rank, is an intercommunicator, has ranks
/// that are not of MPI_COMM_WORLD, or Unisono has no communicator for it; or it has none yet, and none is made. The
/// answer is the same on all its ranks.
const Door* door_of(MPI_Comm comm, Make make = Make::kYes);
/// Once, behind MPI_Init and before MPI_Finalize.
void open_doors();
void close_doors();

}  // namespace unisono::mpi
