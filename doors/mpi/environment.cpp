// Begin and end of a program of MPI. Exported: they stand before those of the MPI below.
#include "doors/mpi/door.hpp"
#include "doors/mpi/job.hpp"
#include "doors/mpi/report.hpp"
#include "doors/mpi/requests.hpp"

using namespace unisono::mpi;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

namespace {

void open() {
  begin_report();
  begin();
  open_doors();
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

int MPI_Finalize() {
  requests::close();
  print_report();
  close_doors();
  end();
  return PMPI_Finalize();
}

}  // extern "C"
