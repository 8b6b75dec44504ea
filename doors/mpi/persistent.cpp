// Persistent collectives of MPI. Exported: they stand before those of the MPI below.
#include "doors/mpi/persistent.hpp"

#include "doors/mpi/carry.hpp"

using namespace unisono::mpi;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

extern "C" {

int PERSISTENT(Barrier)(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kBarrier, comm, request, [&](Operation& it) { return prepare_barrier(it); },
      [&] { return PERSISTENT_BELOW(Barrier)(comm, info, request); });
}

int PERSISTENT(Bcast)(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request) {
  return carry_persistent(
      Function::kBcast, comm, request, [&](Operation& it) { return prepare_bcast(it, data, count, type, root); },
      [&] { return PERSISTENT_BELOW(Bcast)(data, count, type, root, comm, info, request); });
}

int PERSISTENT(Allgather)(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                          MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kAllgather, comm, request,
      [&](Operation& it) {
        return prepare_allgather(it, {send, send_count, send_type}, {receive, count, type});
      },
      [&] {
        return PERSISTENT_BELOW(Allgather)(send, send_count, send_type, receive, count, type, comm, info, request);
      });
}

int PERSISTENT(Allgatherv)(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
                           const int* displacements, MPI_Datatype type, MPI_Comm comm, MPI_Info info,
                           MPI_Request* request) {
  return carry_persistent(
      Function::kAllgatherv, comm, request,
      [&](Operation& it) {
        return prepare_allgatherv(it, {send, send_count, send_type}, {receive, counts, displacements, type});
      },
      [&] {
        return PERSISTENT_BELOW(Allgatherv)(send, send_count, send_type, receive, counts, displacements, type, comm,
                                            info, request);
      });
}

int PERSISTENT(Gather)(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                       MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kGather, comm, request,
      [&](Operation& it) {
        return prepare_gather(it, {send, send_count, send_type}, {receive, count, type}, root);
      },
      [&] {
        return PERSISTENT_BELOW(Gather)(send, send_count, send_type, receive, count, type, root, comm, info, request);
      });
}

int PERSISTENT(Gatherv)(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
                        const int* displacements, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
                        MPI_Request* request) {
  return carry_persistent(
      Function::kGatherv, comm, request,
      [&](Operation& it) {
        return prepare_gatherv(it, {send, send_count, send_type}, {receive, counts, displacements, type}, root);
      },
      [&] {
        return PERSISTENT_BELOW(Gatherv)(send, send_count, send_type, receive, counts, displacements, type, root, comm,
                                         info, request);
      });
}

int PERSISTENT(Scatter)(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                        MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kScatter, comm, request,
      [&](Operation& it) {
        return prepare_scatter(it, {send, send_count, send_type}, {receive, count, type}, root);
      },
      [&] {
        return PERSISTENT_BELOW(Scatter)(send, send_count, send_type, receive, count, type, root, comm, info, request);
      });
}

int PERSISTENT(Scatterv)(const void* send, const int* counts, const int* displacements, MPI_Datatype send_type,
                         void* receive, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
                         MPI_Request* request) {
  return carry_persistent(
      Function::kScatterv, comm, request,
      [&](Operation& it) {
        return prepare_scatterv(it, {send, counts, displacements, send_type}, {receive, count, type}, root);
      },
      [&] {
        return PERSISTENT_BELOW(Scatterv)(send, counts, displacements, send_type, receive, count, type, root, comm,
                                          info, request);
      });
}

int PERSISTENT(Alltoall)(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                         MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kAlltoall, comm, request,
      [&](Operation& it) {
        return prepare_alltoall(it, {send, send_count, send_type}, {receive, count, type});
      },
      [&] {
        return PERSISTENT_BELOW(Alltoall)(send, send_count, send_type, receive, count, type, comm, info, request);
      });
}

int PERSISTENT(Alltoallv)(const void* send, const int* send_counts, const int* send_displacements,
                          MPI_Datatype send_type, void* receive, const int* counts, const int* displacements,
                          MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kAlltoallv, comm, request,
      [&](Operation& it) {
        return prepare_alltoallv(it, {send, send_counts, send_displacements, send_type},
                                 {receive, counts, displacements, type});
      },
      [&] {
        return PERSISTENT_BELOW(Alltoallv)(send, send_counts, send_displacements, send_type, receive, counts,
                                           displacements, type, comm, info, request);
      });
}

int PERSISTENT(Alltoallw)(const void* send, const int* send_counts, const int* send_displacements,
                          const MPI_Datatype* send_types, void* receive, const int* counts, const int* displacements,
                          const MPI_Datatype* types, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kAlltoallw, comm, request,
      [&](Operation& it) {
        return prepare_alltoallw(it, {send, send_counts, send_displacements, send_types},
                                 {receive, counts, displacements, types});
      },
      [&] {
        return PERSISTENT_BELOW(Alltoallw)(send, send_counts, send_displacements, send_types, receive, counts,
                                           displacements, types, comm, info, request);
      });
}

int PERSISTENT(Allreduce)(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                          MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kAllreduce, comm, request,
      [&](Operation& it) {
        return prepare_vectors(it, UNISONO_ALLREDUCE, {send, receive, type, op}, count);
      },
      [&] { return PERSISTENT_BELOW(Allreduce)(send, receive, count, type, op, comm, info, request); });
}

int PERSISTENT(Scan)(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                     MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kScan, comm, request,
      [&](Operation& it) {
        return prepare_vectors(it, UNISONO_SCAN, {send, receive, type, op}, count);
      },
      [&] { return PERSISTENT_BELOW(Scan)(send, receive, count, type, op, comm, info, request); });
}

int PERSISTENT(Exscan)(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                       MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kExscan, comm, request,
      [&](Operation& it) {
        return prepare_vectors(it, UNISONO_EXSCAN, {send, receive, type, op}, count);
      },
      [&] { return PERSISTENT_BELOW(Exscan)(send, receive, count, type, op, comm, info, request); });
}

int PERSISTENT(Reduce)(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
                       MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kReduce, comm, request,
      [&](Operation& it) {
        return prepare_reduce(it, {send, receive, type, op}, count, root);
      },
      [&] { return PERSISTENT_BELOW(Reduce)(send, receive, count, type, op, root, comm, info, request); });
}

int PERSISTENT(Reduce_scatter_block)(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                                     MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kReduceScatterBlock, comm, request,
      [&](Operation& it) {
        return prepare_reduce_scatter_block(it, {send, receive, type, op}, count);
      },
      [&] { return PERSISTENT_BELOW(Reduce_scatter_block)(send, receive, count, type, op, comm, info, request); });
}

int PERSISTENT(Reduce_scatter)(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op,
                               MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return carry_persistent(
      Function::kReduceScatter, comm, request,
      [&](Operation& it) {
        return prepare_reduce_scatter(it, {send, receive, type, op}, counts);
      },
      [&] { return PERSISTENT_BELOW(Reduce_scatter)(send, receive, counts, type, op, comm, info, request); });
}

}  // extern "C"
