// How a function of MPI becomes a call of Unisono.
#pragma once

#include <cstdint>
#include <optional>

#include "doors/mpi/buffer.hpp"
#include "doors/mpi/door.hpp"
#include "doors/mpi/mpi.hpp"
#include "doors/mpi/report.hpp"
#include "unisono/unisono.h"

namespace unisono::mpi {

/// A call of bytes, or of elements that are combined.
unisono_call call_of(unisono_collective collective, unisono_datatype datatype = UNISONO_BYTE);

/// What a reduction of MPI is here; none if it is the MPI's own, which `entry` is told.
struct Reduction {
  unisono_op op;
  unisono_datatype datatype;
  std::uint64_t bytes;  ///< of an element
};
std::optional<Reduction> reduction_of(MPI_Op op, MPI_Datatype type, Entry& entry);

/// Whether a call's operator is not defined on its datatype, which is found out before anything is sent.
bool is_undefined(unisono_result result);

/// Makes the call. Errors go to the communicator's error handler, with a sentence on standard error.
int run(const Door& door, const unisono_call& call, Function function, MPI_Comm comm);
/// What became of a call.
int told(unisono_result result, Function function, MPI_Comm comm);

}  // namespace unisono::mpi
