// What Open MPI's Fortran passes, as C has it. Its library for Fortran calls the PMPI_ functions of C, so the shim
// defines the Fortran names itself, and calls the MPI_ functions of C, which are its own where there is one.
//
// A function has two names: `mpi_bcast_` is what programs with mpif.h or `use mpi` call, `ompi_bcast_f` what the
// library for `use mpi_f08` calls. Both hand over the same.
#pragma once

#include <vector>

#include "doors/mpi/mpi.hpp"

// Constants of Fortran are addresses of common blocks, by which they are known. Weak, for a library of Open MPI that
// was built without Fortran has none of them.
#pragma GCC visibility push(default)
extern "C" {
extern MPI_Fint mpi_fortran_bottom_ [[gnu::weak]];
extern MPI_Fint mpi_fortran_in_place_ [[gnu::weak]];
extern MPI_Fint mpi_fortran_status_ignore_ [[gnu::weak]];
extern MPI_Fint mpi_fortran_statuses_ignore_ [[gnu::weak]];
}
#pragma GCC visibility pop

namespace unisono::mpi::fortran {

// Arrays of counts and displacements are handed on as they are.
static_assert(sizeof(MPI_Fint) == sizeof(int));

using In = const MPI_Fint*;  ///< a number, a handle, or an array of them
using Out = MPI_Fint*;

/// A buffer, which may be MPI_IN_PLACE or MPI_BOTTOM.
inline void* place(void* buffer) {
  if (buffer == nullptr) return nullptr;
  if (buffer == &mpi_fortran_in_place_) return MPI_IN_PLACE;
  if (buffer == &mpi_fortran_bottom_) return MPI_BOTTOM;
  return buffer;
}

inline MPI_Comm comm_of(In comm) { return PMPI_Comm_f2c(*comm); }
inline MPI_Datatype type_of(In type) { return PMPI_Type_f2c(*type); }
inline MPI_Op op_of(In op) { return PMPI_Op_f2c(*op); }

/// A call's last argument, which some callers leave out.
inline void answer(Out error, int result) {
  if (error != nullptr) *error = result;
}

/// The datatypes of a call with one for each rank of `comm`; none of what is sent in place, where `types` says nothing.
std::vector<MPI_Datatype> types_of(In types, const void* send, MPI_Comm comm);

/// The same for as long as the program runs, for a call that does not block may look at them until it ends. Equal ones
/// are one. Thread-safe.
const MPI_Datatype* kept(std::vector<MPI_Datatype> types);

/// Makes a call that gives a request.
template <class Call>
void begun(Out request, Out error, const Call& call) {
  MPI_Request made = MPI_REQUEST_NULL;
  const int result = call(&made);
  if (result == MPI_SUCCESS) *request = PMPI_Request_c2f(made);
  answer(error, result);
}

}  // namespace unisono::mpi::fortran
