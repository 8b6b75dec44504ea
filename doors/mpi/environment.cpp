// Begin and end of a program of MPI. What is exported stands before the functions of the MPI below.
#include "doors/mpi/door.hpp"
#include "doors/mpi/job.hpp"
#include "doors/mpi/report.hpp"
#include "doors/mpi/requests.hpp"

using namespace unisono::mpi;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

namespace {

/// At the end: MPI_Finalize frees MPI_COMM_SELF before all else, whoever calls it and by whatever name.
int close(MPI_Comm /*comm*/, int /*key*/, void* /*value*/, void* /*state*/) {
  requests::close();
  print_report();
  close_doors();
  end();
  return MPI_SUCCESS;
}

void open() {
  begin_report();
  begin();
  open_doors();
  int key = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close, &key, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  PMPI_Comm_free_keyval(&key);  // it goes with the attribute
}

}  // namespace

extern "C" {

int MPI_Init(int* argc, char*** argv) {
  const int result = PMPI_Init(argc, argv);
  if (result != MPI_SUCCESS) return result;
  open();
  return result;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = PMPI_Init_thread(argc, argv, required, provided);
  if (result != MPI_SUCCESS) return result;
  open();
  return result;
}

}  // extern "C"
