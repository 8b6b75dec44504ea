// Functions of MPI that wait for requests, test, start and free them. Exported: they stand before those of the MPI
// below, which do the work; here collectives in flight get progress meanwhile.
#include "doors/mpi/mpi.hpp"
#include "doors/mpi/requests.hpp"

namespace requests = unisono::mpi::requests;

namespace {

bool flies() { return requests::in_flight.load(std::memory_order_acquire) != 0; }
bool has_persistent() { return requests::persistent.load(std::memory_order_acquire) != 0; }

/// Waits by tests while collectives are in flight: `test` says by its flag whether it has done what `wait` would do.
template <class Test, class Wait>
int until(Test&& test, Wait&& wait) {
  while (flies()) {
    requests::look();
    int flag = 0;
    const int error = test(&flag);
    if (flag != 0 || error != MPI_SUCCESS) return error;
    requests::linger();
  }
  return wait();
}

}  // namespace

extern "C" {

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (flies()) requests::await(*request);
  return until([&](int* flag) { return PMPI_Test(request, flag, status); }, [&] { return PMPI_Wait(request, status); });
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  for (int i = 0; i < count && flies(); ++i) requests::await(requests[i]);
  return until([&](int* flag) { return PMPI_Testall(count, requests, flag, statuses); },
               [&] { return PMPI_Waitall(count, requests, statuses); });
}

int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  return until([&](int* flag) { return PMPI_Testany(count, requests, index, flag, status); },
               [&] { return PMPI_Waitany(count, requests, index, status); });
}

int MPI_Waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  return until(
      [&](int* flag) {
        const int error = PMPI_Testsome(count, requests, done, indices, statuses);
        *flag = *done != 0 ? 1 : 0;  // MPI_UNDEFINED: there is nothing to wait for
        return error;
      },
      [&] { return PMPI_Waitsome(count, requests, done, indices, statuses); });
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (flies()) requests::look();
  return PMPI_Test(request, flag, status);
}

int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (flies()) requests::look();
  return PMPI_Testall(count, requests, flag, statuses);
}

int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (flies()) requests::look();
  return PMPI_Testany(count, requests, index, flag, status);
}

int MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (flies()) requests::look();
  return PMPI_Testsome(count, requests, done, indices, statuses);
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (flies()) requests::look();
  return PMPI_Request_get_status(request, flag, status);
}

int MPI_Start(MPI_Request* request) {
  int error = MPI_SUCCESS;
  return has_persistent() && requests::restart(request, &error) ? error : PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request* requests) {
  if (!has_persistent()) return PMPI_Startall(count, requests);
  for (int i = 0; i < count; ++i) {
    if (const int error = MPI_Start(&requests[i]); error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

int MPI_Request_free(MPI_Request* request) {
  if (flies() || has_persistent()) requests::forget(*request);
  return PMPI_Request_free(request);
}

int MPI_Op_free(MPI_Op* op) {
  if ((flies() || has_persistent()) && requests::frees_later(op)) return MPI_SUCCESS;
  return PMPI_Op_free(op);
}

}  // extern "C"
