// Exchanges with neighbours of MPI: blocking, non-blocking and persistent. Exported: they stand before those of the MPI
// below.
#include "doors/mpi/carry.hpp"
#include "doors/mpi/persistent.hpp"

using namespace unisono::mpi;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

extern "C" {

int MPI_Neighbor_allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                           MPI_Datatype type, MPI_Comm comm) {
  return carry(
      Function::kNeighborAllgather, comm,
      [&](Operation& it) {
        return prepare_neighbours(it, {send, send_count, nullptr, nullptr, send_type, nullptr, nullptr},
                                  {receive, count, nullptr, nullptr, type, nullptr, nullptr}, true);
      },
      [&] { return PMPI_Neighbor_allgather(send, send_count, send_type, receive, count, type, comm); });
}

int MPI_Ineighbor_allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                            MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kNeighborAllgather, comm, request,
      [&](Operation& it) {
        return prepare_neighbours(it, {send, send_count, nullptr, nullptr, send_type, nullptr, nullptr},
                                  {receive, count, nullptr, nullptr, type, nullptr, nullptr}, true);
      },
      [&] { return PMPI_Ineighbor_allgather(send, send_count, send_type, receive, count, type, comm, request); });
}

int PERSISTENT(Neighbor_allgather)(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                                   MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kNeighborAllgather, comm, request,
      [&](Operation& it) {
        return prepare_neighbours(it, {send, send_count, nullptr, nullptr, send_type, nullptr, nullptr},
                                  {receive, count, nullptr, nullptr, type, nullptr, nullptr}, true);
      },
      [&] {
        return PERSISTENT_BELOW(Neighbor_allgather)(send, send_count, send_type, receive, count, type, comm, info,
                                                    request);
      });
}

int MPI_Neighbor_allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
                            const int* displacements, MPI_Datatype type, MPI_Comm comm) {
  return carry(
      Function::kNeighborAllgatherv, comm,
      [&](Operation& it) {
        return prepare_neighbours(it, {send, send_count, nullptr, nullptr, send_type, nullptr, nullptr},
                                  {receive, 0, counts, displacements, type, nullptr, nullptr}, true);
      },
      [&] {
        return PMPI_Neighbor_allgatherv(send, send_count, send_type, receive, counts, displacements, type, comm);
      });
}

int MPI_Ineighbor_allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
                             const int* displacements, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kNeighborAllgatherv, comm, request,
      [&](Operation& it) {
        return prepare_neighbours(it, {send, send_count, nullptr, nullptr, send_type, nullptr, nullptr},
                                  {receive, 0, counts, displacements, type, nullptr, nullptr}, true);
      },
      [&] {
        return PMPI_Ineighbor_allgatherv(send, send_count, send_type, receive, counts, displacements, type, comm,
                                         request);
      });
}

int PERSISTENT(Neighbor_allgatherv)(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                                    const int* counts, const int* displacements, MPI_Datatype type, MPI_Comm comm,
                                    MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kNeighborAllgatherv, comm, request,
      [&](Operation& it) {
        return prepare_neighbours(it, {send, send_count, nullptr, nullptr, send_type, nullptr, nullptr},
                                  {receive, 0, counts, displacements, type, nullptr, nullptr}, true);
      },
      [&] {
        return PERSISTENT_BELOW(Neighbor_allgatherv)(send, send_count, send_type, receive, counts, displacements, type,
                                                     comm, info, request);
      });
}

int MPI_Neighbor_alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                          MPI_Datatype type, MPI_Comm comm) {
  return carry(
      Function::kNeighborAlltoall, comm,
      [&](Operation& it) {
        return prepare_neighbours(it, {send, send_count, nullptr, nullptr, send_type, nullptr, nullptr},
                                  {receive, count, nullptr, nullptr, type, nullptr, nullptr}, false);
      },
      [&] { return PMPI_Neighbor_alltoall(send, send_count, send_type, receive, count, type, comm); });
}

int MPI_Ineighbor_alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                           MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kNeighborAlltoall, comm, request,
      [&](Operation& it) {
        return prepare_neighbours(it, {send, send_count, nullptr, nullptr, send_type, nullptr, nullptr},
                                  {receive, count, nullptr, nullptr, type, nullptr, nullptr}, false);
      },
      [&] { return PMPI_Ineighbor_alltoall(send, send_count, send_type, receive, count, type, comm, request); });
}

int PERSISTENT(Neighbor_alltoall)(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                                  MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kNeighborAlltoall, comm, request,
      [&](Operation& it) {
        return prepare_neighbours(it, {send, send_count, nullptr, nullptr, send_type, nullptr, nullptr},
                                  {receive, count, nullptr, nullptr, type, nullptr, nullptr}, false);
      },
      [&] {
        return PERSISTENT_BELOW(Neighbor_alltoall)(send, send_count, send_type, receive, count, type, comm, info,
                                                   request);
      });
}

int MPI_Neighbor_alltoallv(const void* send, const int* send_counts, const int* send_displacements,
                           MPI_Datatype send_type, void* receive, const int* counts, const int* displacements,
                           MPI_Datatype type, MPI_Comm comm) {
  return carry(
      Function::kNeighborAlltoallv, comm,
      [&](Operation& it) {
        return prepare_neighbours(it, {send, 0, send_counts, send_displacements, send_type, nullptr, nullptr},
                                  {receive, 0, counts, displacements, type, nullptr, nullptr}, false);
      },
      [&] {
        return PMPI_Neighbor_alltoallv(send, send_counts, send_displacements, send_type, receive, counts, displacements,
                                       type, comm);
      });
}

int MPI_Ineighbor_alltoallv(const void* send, const int* send_counts, const int* send_displacements,
                            MPI_Datatype send_type, void* receive, const int* counts, const int* displacements,
                            MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kNeighborAlltoallv, comm, request,
      [&](Operation& it) {
        return prepare_neighbours(it, {send, 0, send_counts, send_displacements, send_type, nullptr, nullptr},
                                  {receive, 0, counts, displacements, type, nullptr, nullptr}, false);
      },
      [&] {
        return PMPI_Ineighbor_alltoallv(send, send_counts, send_displacements, send_type, receive, counts,
                                        displacements, type, comm, request);
      });
}

int PERSISTENT(Neighbor_alltoallv)(const void* send, const int* send_counts, const int* send_displacements,
                                   MPI_Datatype send_type, void* receive, const int* counts, const int* displacements,
                                   MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kNeighborAlltoallv, comm, request,
      [&](Operation& it) {
        return prepare_neighbours(it, {send, 0, send_counts, send_displacements, send_type, nullptr, nullptr},
                                  {receive, 0, counts, displacements, type, nullptr, nullptr}, false);
      },
      [&] {
        return PERSISTENT_BELOW(Neighbor_alltoallv)(send, send_counts, send_displacements, send_type, receive, counts,
                                                    displacements, type, comm, info, request);
      });
}

int MPI_Neighbor_alltoallw(const void* send, const int* send_counts, const MPI_Aint* send_displacements,
                           const MPI_Datatype* send_types, void* receive, const int* counts,
                           const MPI_Aint* displacements, const MPI_Datatype* types, MPI_Comm comm) {
  return carry(
      Function::kNeighborAlltoallw, comm,
      [&](Operation& it) {
        return prepare_neighbours(it,
                                  {send, 0, send_counts, nullptr, MPI_DATATYPE_NULL, send_types, send_displacements},
                                  {receive, 0, counts, nullptr, MPI_DATATYPE_NULL, types, displacements}, false);
      },
      [&] {
        return PMPI_Neighbor_alltoallw(send, send_counts, send_displacements, send_types, receive, counts,
                                       displacements, types, comm);
      });
}

int MPI_Ineighbor_alltoallw(const void* send, const int* send_counts, const MPI_Aint* send_displacements,
                            const MPI_Datatype* send_types, void* receive, const int* counts,
                            const MPI_Aint* displacements, const MPI_Datatype* types, MPI_Comm comm,
                            MPI_Request* request) {
  return carry_started(
      Function::kNeighborAlltoallw, comm, request,
      [&](Operation& it) {
        return prepare_neighbours(it,
                                  {send, 0, send_counts, nullptr, MPI_DATATYPE_NULL, send_types, send_displacements},
                                  {receive, 0, counts, nullptr, MPI_DATATYPE_NULL, types, displacements}, false);
      },
      [&] {
        return PMPI_Ineighbor_alltoallw(send, send_counts, send_displacements, send_types, receive, counts,
                                        displacements, types, comm, request);
      });
}

int PERSISTENT(Neighbor_alltoallw)(const void* send, const int* send_counts, const MPI_Aint* send_displacements,
                                   const MPI_Datatype* send_types, void* receive, const int* counts,
                                   const MPI_Aint* displacements, const MPI_Datatype* types, MPI_Comm comm,
                                   MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kNeighborAlltoallw, comm, request,
      [&](Operation& it) {
        return prepare_neighbours(it,
                                  {send, 0, send_counts, nullptr, MPI_DATATYPE_NULL, send_types, send_displacements},
                                  {receive, 0, counts, nullptr, MPI_DATATYPE_NULL, types, displacements}, false);
      },
      [&] {
        return PERSISTENT_BELOW(Neighbor_alltoallw)(send, send_counts, send_displacements, send_types, receive, counts,
                                                    displacements, types, comm, info, request);
      });
}

}  // extern "C"
