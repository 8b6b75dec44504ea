// Blocking collectives of MPI. Exported: they stand before those of the MPI below.
#include "doors/mpi/carry.hpp"

using namespace unisono::mpi;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

extern "C" {

int MPI_Barrier(MPI_Comm comm) {
  return carry(
      Function::kBarrier, comm, [&](Operation& it) { return prepare_barrier(it); }, [&] { return PMPI_Barrier(comm); });
}

int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return carry(
      Function::kBcast, comm, [&](Operation& it) { return prepare_bcast(it, data, count, type, root); },
      [&] { return PMPI_Bcast(data, count, type, root, comm); });
}

int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
                  MPI_Comm comm) {
  return carry(
      Function::kAllgather, comm,
      [&](Operation& it) {
        return prepare_allgather(it, {send, send_count, send_type}, {receive, count, type});
      },
      [&] { return PMPI_Allgather(send, send_count, send_type, receive, count, type, comm); });
}

int MPI_Allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
                   const int* displacements, MPI_Datatype type, MPI_Comm comm) {
  return carry(
      Function::kAllgatherv, comm,
      [&](Operation& it) {
        return prepare_allgatherv(it, {send, send_count, send_type}, {receive, counts, displacements, type});
      },
      [&] { return PMPI_Allgatherv(send, send_count, send_type, receive, counts, displacements, type, comm); });
}

int MPI_Gather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
               int root, MPI_Comm comm) {
  return carry(
      Function::kGather, comm,
      [&](Operation& it) {
        return prepare_gather(it, {send, send_count, send_type}, {receive, count, type}, root);
      },
      [&] { return PMPI_Gather(send, send_count, send_type, receive, count, type, root, comm); });
}

int MPI_Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
                const int* displacements, MPI_Datatype type, int root, MPI_Comm comm) {
  return carry(
      Function::kGatherv, comm,
      [&](Operation& it) {
        return prepare_gatherv(it, {send, send_count, send_type}, {receive, counts, displacements, type}, root);
      },
      [&] { return PMPI_Gatherv(send, send_count, send_type, receive, counts, displacements, type, root, comm); });
}

int MPI_Scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
                int root, MPI_Comm comm) {
  return carry(
      Function::kScatter, comm,
      [&](Operation& it) {
        return prepare_scatter(it, {send, send_count, send_type}, {receive, count, type}, root);
      },
      [&] { return PMPI_Scatter(send, send_count, send_type, receive, count, type, root, comm); });
}

int MPI_Scatterv(const void* send, const int* counts, const int* displacements, MPI_Datatype send_type, void* receive,
                 int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return carry(
      Function::kScatterv, comm,
      [&](Operation& it) {
        return prepare_scatterv(it, {send, counts, displacements, send_type}, {receive, count, type}, root);
      },
      [&] { return PMPI_Scatterv(send, counts, displacements, send_type, receive, count, type, root, comm); });
}

int MPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
                 MPI_Comm comm) {
  return carry(
      Function::kAlltoall, comm,
      [&](Operation& it) {
        return prepare_alltoall(it, {send, send_count, send_type}, {receive, count, type});
      },
      [&] { return PMPI_Alltoall(send, send_count, send_type, receive, count, type, comm); });
}

int MPI_Alltoallv(const void* send, const int* send_counts, const int* send_displacements, MPI_Datatype send_type,
                  void* receive, const int* counts, const int* displacements, MPI_Datatype type, MPI_Comm comm) {
  return carry(
      Function::kAlltoallv, comm,
      [&](Operation& it) {
        return prepare_alltoallv(it, {send, send_counts, send_displacements, send_type},
                                 {receive, counts, displacements, type});
      },
      [&] {
        return PMPI_Alltoallv(send, send_counts, send_displacements, send_type, receive, counts, displacements, type,
                              comm);
      });
}

int MPI_Alltoallw(const void* send, const int* send_counts, const int* send_displacements,
                  const MPI_Datatype* send_types, void* receive, const int* counts, const int* displacements,
                  const MPI_Datatype* types, MPI_Comm comm) {
  return carry(
      Function::kAlltoallw, comm,
      [&](Operation& it) {
        return prepare_alltoallw(it, {send, send_counts, send_displacements, send_types},
                                 {receive, counts, displacements, types});
      },
      [&] {
        return PMPI_Alltoallw(send, send_counts, send_displacements, send_types, receive, counts, displacements, types,
                              comm);
      });
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return carry(
      Function::kAllreduce, comm,
      [&](Operation& it) {
        return prepare_vectors(it, UNISONO_ALLREDUCE, {send, receive, type, op}, count);
      },
      [&] { return PMPI_Allreduce(send, receive, count, type, op, comm); });
}

int MPI_Scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return carry(
      Function::kScan, comm,
      [&](Operation& it) {
        return prepare_vectors(it, UNISONO_SCAN, {send, receive, type, op}, count);
      },
      [&] { return PMPI_Scan(send, receive, count, type, op, comm); });
}

int MPI_Exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return carry(
      Function::kExscan, comm,
      [&](Operation& it) {
        return prepare_vectors(it, UNISONO_EXSCAN, {send, receive, type, op}, count);
      },
      [&] { return PMPI_Exscan(send, receive, count, type, op, comm); });
}

int MPI_Reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  return carry(
      Function::kReduce, comm,
      [&](Operation& it) {
        return prepare_reduce(it, {send, receive, type, op}, count, root);
      },
      [&] { return PMPI_Reduce(send, receive, count, type, op, root, comm); });
}

int MPI_Reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return carry(
      Function::kReduceScatterBlock, comm,
      [&](Operation& it) {
        return prepare_reduce_scatter_block(it, {send, receive, type, op}, count);
      },
      [&] { return PMPI_Reduce_scatter_block(send, receive, count, type, op, comm); });
}

int MPI_Reduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm) {
  return carry(
      Function::kReduceScatter, comm,
      [&](Operation& it) {
        return prepare_reduce_scatter(it, {send, receive, type, op}, counts);
      },
      [&] { return PMPI_Reduce_scatter(send, receive, counts, type, op, comm); });
}

}  // extern "C"
