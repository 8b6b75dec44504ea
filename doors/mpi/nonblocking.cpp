// Non-blocking collectives of MPI. Exported: they stand before those of the MPI below.
#include "doors/mpi/carry.hpp"

using namespace unisono::mpi;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

extern "C" {

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kBarrier, comm, request, [&](Operation& it) { return prepare_barrier(it); },
      [&] { return PMPI_Ibarrier(comm, request); });
}

int MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kBcast, comm, request, [&](Operation& it) { return prepare_bcast(it, data, count, type, root); },
      [&] { return PMPI_Ibcast(data, count, type, root, comm, request); });
}

int MPI_Iallgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                   MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kAllgather, comm, request,
      [&](Operation& it) {
        return prepare_allgather(it, {send, send_count, send_type}, {receive, count, type});
      },
      [&] { return PMPI_Iallgather(send, send_count, send_type, receive, count, type, comm, request); });
}

int MPI_Iallgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
                    const int* displacements, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kAllgatherv, comm, request,
      [&](Operation& it) {
        return prepare_allgatherv(it, {send, send_count, send_type}, {receive, counts, displacements, type});
      },
      [&] {
        return PMPI_Iallgatherv(send, send_count, send_type, receive, counts, displacements, type, comm, request);
      });
}

int MPI_Igather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
                int root, MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kGather, comm, request,
      [&](Operation& it) {
        return prepare_gather(it, {send, send_count, send_type}, {receive, count, type}, root);
      },
      [&] { return PMPI_Igather(send, send_count, send_type, receive, count, type, root, comm, request); });
}

int MPI_Igatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
                 const int* displacements, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kGatherv, comm, request,
      [&](Operation& it) {
        return prepare_gatherv(it, {send, send_count, send_type}, {receive, counts, displacements, type}, root);
      },
      [&] {
        return PMPI_Igatherv(send, send_count, send_type, receive, counts, displacements, type, root, comm, request);
      });
}

int MPI_Iscatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
                 int root, MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kScatter, comm, request,
      [&](Operation& it) {
        return prepare_scatter(it, {send, send_count, send_type}, {receive, count, type}, root);
      },
      [&] { return PMPI_Iscatter(send, send_count, send_type, receive, count, type, root, comm, request); });
}

int MPI_Iscatterv(const void* send, const int* counts, const int* displacements, MPI_Datatype send_type, void* receive,
                  int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kScatterv, comm, request,
      [&](Operation& it) {
        return prepare_scatterv(it, {send, counts, displacements, send_type}, {receive, count, type}, root);
      },
      [&] {
        return PMPI_Iscatterv(send, counts, displacements, send_type, receive, count, type, root, comm, request);
      });
}

int MPI_Ialltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
                  MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kAlltoall, comm, request,
      [&](Operation& it) {
        return prepare_alltoall(it, {send, send_count, send_type}, {receive, count, type});
      },
      [&] { return PMPI_Ialltoall(send, send_count, send_type, receive, count, type, comm, request); });
}

int MPI_Ialltoallv(const void* send, const int* send_counts, const int* send_displacements, MPI_Datatype send_type,
                   void* receive, const int* counts, const int* displacements, MPI_Datatype type, MPI_Comm comm,
                   MPI_Request* request) {
  return carry_started(
      Function::kAlltoallv, comm, request,
      [&](Operation& it) {
        return prepare_alltoallv(it, {send, send_counts, send_displacements, send_type},
                                 {receive, counts, displacements, type});
      },
      [&] {
        return PMPI_Ialltoallv(send, send_counts, send_displacements, send_type, receive, counts, displacements, type,
                               comm, request);
      });
}

int MPI_Ialltoallw(const void* send, const int* send_counts, const int* send_displacements,
                   const MPI_Datatype* send_types, void* receive, const int* counts, const int* displacements,
                   const MPI_Datatype* types, MPI_Comm comm, MPI_Request* request) {
  return carry_started(
      Function::kAlltoallw, comm, request,
      [&](Operation& it) {
        return prepare_alltoallw(it, {send, send_counts, send_displacements, send_types},
                                 {receive, counts, displacements, types});
      },
      [&] {
        return PMPI_Ialltoallw(send, send_counts, send_displacements, send_types, receive, counts, displacements, types,
                               comm, request);
      });
}

int MPI_Iallreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  return carry_started(
      Function::kAllreduce, comm, request,
      [&](Operation& it) {
        return prepare_vectors(it, UNISONO_ALLREDUCE, {send, receive, type, op}, count);
      },
      [&] { return PMPI_Iallreduce(send, receive, count, type, op, comm, request); });
}

int MPI_Iscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
              MPI_Request* request) {
  return carry_started(
      Function::kScan, comm, request,
      [&](Operation& it) {
        return prepare_vectors(it, UNISONO_SCAN, {send, receive, type, op}, count);
      },
      [&] { return PMPI_Iscan(send, receive, count, type, op, comm, request); });
}

int MPI_Iexscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                MPI_Request* request) {
  return carry_started(
      Function::kExscan, comm, request,
      [&](Operation& it) {
        return prepare_vectors(it, UNISONO_EXSCAN, {send, receive, type, op}, count);
      },
      [&] { return PMPI_Iexscan(send, receive, count, type, op, comm, request); });
}

int MPI_Ireduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request* request) {
  return carry_started(
      Function::kReduce, comm, request,
      [&](Operation& it) {
        return prepare_reduce(it, {send, receive, type, op}, count, root);
      },
      [&] { return PMPI_Ireduce(send, receive, count, type, op, root, comm, request); });
}

int MPI_Ireduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                              MPI_Request* request) {
  return carry_started(
      Function::kReduceScatterBlock, comm, request,
      [&](Operation& it) {
        return prepare_reduce_scatter_block(it, {send, receive, type, op}, count);
      },
      [&] { return PMPI_Ireduce_scatter_block(send, receive, count, type, op, comm, request); });
}

int MPI_Ireduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                        MPI_Request* request) {
  return carry_started(
      Function::kReduceScatter, comm, request,
      [&](Operation& it) {
        return prepare_reduce_scatter(it, {send, receive, type, op}, counts);
      },
      [&] { return PMPI_Ireduce_scatter(send, receive, counts, type, op, comm, request); });
}

}  // extern "C"
