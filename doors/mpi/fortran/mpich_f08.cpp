// Programs of MPICH with `use mpi_f08`. Its library for Fortran calls the MPI_ functions of C where a call has a
// buffer, which are the shim's, and so it does all with mpif.h and `use mpi`; but what has no buffer goes to PMPI_
// there. The functions here are those, and go to MPI_.
//
// Handles and statuses of Fortran are those of C. `error` may be left out.
#include "doors/mpi/mpi.hpp"

static_assert(sizeof(MPI_Comm) == sizeof(int) && sizeof(MPI_Request) == sizeof(int));
static_assert(sizeof(MPI_Status) == sizeof(MPI_F08_status));

// Known by their addresses. Weak, for programs that are not in Fortran have none of them.
#pragma weak MPIR_F08_MPI_STATUS_IGNORE_OBJ
#pragma weak MPIR_F08_MPI_STATUSES_IGNORE_OBJ

namespace {

using In = const int*;
using Out = int*;

void answer(Out error, int result) {
  if (error != nullptr) *error = result;
}

/// An index as Fortran counts; MPI_UNDEFINED, which is negative, is the same in both. MPICH 4.0 itself counts from 0
/// here, which 4.1 mends.
void count_from_one(Out index) {
  if (*index >= 0) ++*index;
}
void count_from_one(In count, Out indices) {
  for (int i = 0; i < *count; ++i) count_from_one(indices + i);
}

MPI_Status* one(MPI_Status* status) {
  const void* const ignored = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
  return status == ignored ? MPI_STATUS_IGNORE : status;
}
MPI_Status* some(MPI_Status* statuses) {
  const void* const ignored = &MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
  return statuses == ignored ? MPI_STATUSES_IGNORE : statuses;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// NOLINTBEGIN(readability-identifier-naming): names of Fortran end in an underscore

void mpi_init_f08_(Out error) { answer(error, MPI_Init(nullptr, nullptr)); }

void mpi_init_thread_f08_(In required, Out provided, Out error) {
  answer(error, MPI_Init_thread(nullptr, nullptr, *required, provided));
}

void mpi_finalize_f08_(Out error) { answer(error, MPI_Finalize()); }

void mpi_comm_dup_f08_(In comm, Out made, Out error) { answer(error, MPI_Comm_dup(*comm, made)); }

void mpi_comm_dup_with_info_f08_(In comm, In info, Out made, Out error) {
  answer(error, MPI_Comm_dup_with_info(*comm, *info, made));
}

void mpi_comm_split_f08_(In comm, In colour, In key, Out made, Out error) {
  answer(error, MPI_Comm_split(*comm, *colour, *key, made));
}

void mpi_comm_split_type_f08_(In comm, In kind, In key, In info, Out made, Out error) {
  answer(error, MPI_Comm_split_type(*comm, *kind, *key, *info, made));
}

void mpi_comm_create_f08_(In comm, In group, Out made, Out error) {
  answer(error, MPI_Comm_create(*comm, *group, made));
}

void mpi_comm_create_group_f08_(In comm, In group, In tag, Out made, Out error) {
  answer(error, MPI_Comm_create_group(*comm, *group, *tag, made));
}

void mpi_intercomm_merge_f08_(In comm, In high, Out made, Out error) {
  answer(error, MPI_Intercomm_merge(*comm, *high, made));
}

void mpi_cart_create_f08_(In comm, In dimensions, In sizes, In periods, In reorder, Out made, Out error) {
  answer(error, MPI_Cart_create(*comm, *dimensions, sizes, periods, *reorder, made));
}

void mpi_cart_sub_f08_(In comm, In remain, Out made, Out error) { answer(error, MPI_Cart_sub(*comm, remain, made)); }

void mpi_barrier_f08_(In comm, Out error) { answer(error, MPI_Barrier(*comm)); }

void mpi_ibarrier_f08_(In comm, Out request, Out error) { answer(error, MPI_Ibarrier(*comm, request)); }

void mpi_barrier_init_f08_(In comm, In info, Out request, Out error) {
  answer(error, MPI_Barrier_init(*comm, *info, request));
}

void mpi_wait_f08_(Out request, MPI_Status* status, Out error) { answer(error, MPI_Wait(request, one(status))); }

void mpi_waitall_f08_(In count, Out requests, MPI_Status* statuses, Out error) {
  answer(error, MPI_Waitall(*count, requests, some(statuses)));
}

void mpi_waitany_f08_(In count, Out requests, Out index, MPI_Status* status, Out error) {
  const int result = MPI_Waitany(*count, requests, index, one(status));
  if (result == MPI_SUCCESS) count_from_one(index);
  answer(error, result);
}

void mpi_waitsome_f08_(In count, Out requests, Out done, Out indices, MPI_Status* statuses, Out error) {
  const int result = MPI_Waitsome(*count, requests, done, indices, some(statuses));
  if (result == MPI_SUCCESS || result == MPI_ERR_IN_STATUS) count_from_one(done, indices);
  answer(error, result);
}

void mpi_test_f08_(Out request, Out flag, MPI_Status* status, Out error) {
  answer(error, MPI_Test(request, flag, one(status)));
}

void mpi_testall_f08_(In count, Out requests, Out flag, MPI_Status* statuses, Out error) {
  answer(error, MPI_Testall(*count, requests, flag, some(statuses)));
}

void mpi_testany_f08_(In count, Out requests, Out index, Out flag, MPI_Status* status, Out error) {
  const int result = MPI_Testany(*count, requests, index, flag, one(status));
  if (result == MPI_SUCCESS && *flag != 0) count_from_one(index);
  answer(error, result);
}

void mpi_testsome_f08_(In count, Out requests, Out done, Out indices, MPI_Status* statuses, Out error) {
  const int result = MPI_Testsome(*count, requests, done, indices, some(statuses));
  if (result == MPI_SUCCESS || result == MPI_ERR_IN_STATUS) count_from_one(done, indices);
  answer(error, result);
}

void mpi_request_free_f08_(Out request, Out error) { answer(error, MPI_Request_free(request)); }

void mpi_request_get_status_f08_(In request, Out flag, MPI_Status* status, Out error) {
  answer(error, MPI_Request_get_status(*request, flag, one(status)));
}

void mpi_start_f08_(Out request, Out error) { answer(error, MPI_Start(request)); }

void mpi_startall_f08_(In count, Out requests, Out error) { answer(error, MPI_Startall(*count, requests)); }

void mpi_op_free_f08_(Out op, Out error) { answer(error, MPI_Op_free(op)); }

// NOLINTEND(readability-identifier-naming)
}  // extern "C"
#pragma GCC visibility pop
