// Persistent collectives of programs in Fortran, which Open MPI 4 has as an extension.
#include "doors/mpi/fortran/openmpi.hpp"

#pragma GCC visibility push(default)
#include <mpi-ext.h>
#pragma GCC visibility pop

using namespace unisono::mpi::fortran;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

#pragma GCC visibility push(default)
extern "C" {

// NOLINTBEGIN(readability-identifier-naming): names of Fortran end in an underscore

void mpix_barrier_init_(In comm, In info, Out request, Out error) {
  begun(request, error,
        [&](MPI_Request* made) { return MPIX_Barrier_init(comm_of(comm), PMPI_Info_f2c(*info), made); });
}

void mpix_bcast_init_(void* data, In count, In type, In root, In comm, In info, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Bcast_init(place(data), *count, type_of(type), *root, comm_of(comm), PMPI_Info_f2c(*info), made);
  });
}

void mpix_reduce_init_(void* send, void* receive, In count, In type, In op, In root, In comm, In info, Out request,
                       Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Reduce_init(place(send), place(receive), *count, type_of(type), op_of(op), *root, comm_of(comm),
                            PMPI_Info_f2c(*info), made);
  });
}

void mpix_allreduce_init_(void* send, void* receive, In count, In type, In op, In comm, In info, Out request,
                          Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Allreduce_init(place(send), place(receive), *count, type_of(type), op_of(op), comm_of(comm),
                               PMPI_Info_f2c(*info), made);
  });
}

void mpix_reduce_scatter_block_init_(void* send, void* receive, In count, In type, In op, In comm, In info, Out request,
                                     Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Reduce_scatter_block_init(place(send), place(receive), *count, type_of(type), op_of(op), comm_of(comm),
                                          PMPI_Info_f2c(*info), made);
  });
}

void mpix_reduce_scatter_init_(void* send, void* receive, In counts, In type, In op, In comm, In info, Out request,
                               Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Reduce_scatter_init(place(send), place(receive), counts, type_of(type), op_of(op), comm_of(comm),
                                    PMPI_Info_f2c(*info), made);
  });
}

void mpix_scan_init_(void* send, void* receive, In count, In type, In op, In comm, In info, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Scan_init(place(send), place(receive), *count, type_of(type), op_of(op), comm_of(comm),
                          PMPI_Info_f2c(*info), made);
  });
}

void mpix_exscan_init_(void* send, void* receive, In count, In type, In op, In comm, In info, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Exscan_init(place(send), place(receive), *count, type_of(type), op_of(op), comm_of(comm),
                            PMPI_Info_f2c(*info), made);
  });
}

void mpix_gather_init_(void* send, In send_count, In send_type, void* receive, In count, In type, In root, In comm,
                       In info, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Gather_init(place(send), *send_count, type_of(send_type), place(receive), *count, type_of(type), *root,
                            comm_of(comm), PMPI_Info_f2c(*info), made);
  });
}

void mpix_gatherv_init_(void* send, In send_count, In send_type, void* receive, In counts, In displacements, In type,
                        In root, In comm, In info, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Gatherv_init(place(send), *send_count, type_of(send_type), place(receive), counts, displacements,
                             type_of(type), *root, comm_of(comm), PMPI_Info_f2c(*info), made);
  });
}

void mpix_scatter_init_(void* send, In send_count, In send_type, void* receive, In count, In type, In root, In comm,
                        In info, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Scatter_init(place(send), *send_count, type_of(send_type), place(receive), *count, type_of(type), *root,
                             comm_of(comm), PMPI_Info_f2c(*info), made);
  });
}

void mpix_scatterv_init_(void* send, In counts, In displacements, In send_type, void* receive, In count, In type,
                         In root, In comm, In info, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Scatterv_init(place(send), counts, displacements, type_of(send_type), place(receive), *count,
                              type_of(type), *root, comm_of(comm), PMPI_Info_f2c(*info), made);
  });
}

void mpix_allgather_init_(void* send, In send_count, In send_type, void* receive, In count, In type, In comm, In info,
                          Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Allgather_init(place(send), *send_count, type_of(send_type), place(receive), *count, type_of(type),
                               comm_of(comm), PMPI_Info_f2c(*info), made);
  });
}

void mpix_allgatherv_init_(void* send, In send_count, In send_type, void* receive, In counts, In displacements, In type,
                           In comm, In info, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Allgatherv_init(place(send), *send_count, type_of(send_type), place(receive), counts, displacements,
                                type_of(type), comm_of(comm), PMPI_Info_f2c(*info), made);
  });
}

void mpix_alltoall_init_(void* send, In send_count, In send_type, void* receive, In count, In type, In comm, In info,
                         Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Alltoall_init(place(send), *send_count, type_of(send_type), place(receive), *count, type_of(type),
                              comm_of(comm), PMPI_Info_f2c(*info), made);
  });
}

void mpix_alltoallv_init_(void* send, In send_counts, In send_displacements, In send_type, void* receive, In counts,
                          In displacements, In type, In comm, In info, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Alltoallv_init(place(send), send_counts, send_displacements, type_of(send_type), place(receive), counts,
                               displacements, type_of(type), comm_of(comm), PMPI_Info_f2c(*info), made);
  });
}

void mpix_alltoallw_init_(void* send, In send_counts, In send_displacements, In send_types, void* receive, In counts,
                          In displacements, In types, In comm, In info, Out request, Out error) {
  MPI_Comm const of = comm_of(comm);
  void* const from = place(send);
  const MPI_Datatype* const from_types = kept(types_of(send_types, from, of));
  const MPI_Datatype* const to_types = kept(types_of(types, nullptr, of));
  begun(request, error, [&](MPI_Request* made) {
    return MPIX_Alltoallw_init(from, send_counts, send_displacements, from_types, place(receive), counts, displacements,
                               to_types, of, PMPI_Info_f2c(*info), made);
  });
}

// What `use mpi_f08` goes by.
decltype(mpix_barrier_init_) ompix_barrier_init_f [[gnu::alias("mpix_barrier_init_")]];
decltype(mpix_bcast_init_) ompix_bcast_init_f [[gnu::alias("mpix_bcast_init_")]];
decltype(mpix_reduce_init_) ompix_reduce_init_f [[gnu::alias("mpix_reduce_init_")]];
decltype(mpix_allreduce_init_) ompix_allreduce_init_f [[gnu::alias("mpix_allreduce_init_")]];
decltype(mpix_reduce_scatter_block_init_) ompix_reduce_scatter_block_init_f
    [[gnu::alias("mpix_reduce_scatter_block_init_")]];
decltype(mpix_reduce_scatter_init_) ompix_reduce_scatter_init_f [[gnu::alias("mpix_reduce_scatter_init_")]];
decltype(mpix_scan_init_) ompix_scan_init_f [[gnu::alias("mpix_scan_init_")]];
decltype(mpix_exscan_init_) ompix_exscan_init_f [[gnu::alias("mpix_exscan_init_")]];
decltype(mpix_gather_init_) ompix_gather_init_f [[gnu::alias("mpix_gather_init_")]];
decltype(mpix_gatherv_init_) ompix_gatherv_init_f [[gnu::alias("mpix_gatherv_init_")]];
decltype(mpix_scatter_init_) ompix_scatter_init_f [[gnu::alias("mpix_scatter_init_")]];
decltype(mpix_scatterv_init_) ompix_scatterv_init_f [[gnu::alias("mpix_scatterv_init_")]];
decltype(mpix_allgather_init_) ompix_allgather_init_f [[gnu::alias("mpix_allgather_init_")]];
decltype(mpix_allgatherv_init_) ompix_allgatherv_init_f [[gnu::alias("mpix_allgatherv_init_")]];
decltype(mpix_alltoall_init_) ompix_alltoall_init_f [[gnu::alias("mpix_alltoall_init_")]];
decltype(mpix_alltoallv_init_) ompix_alltoallv_init_f [[gnu::alias("mpix_alltoallv_init_")]];
decltype(mpix_alltoallw_init_) ompix_alltoallw_init_f [[gnu::alias("mpix_alltoallw_init_")]];

// NOLINTEND(readability-identifier-naming)
}  // extern "C"
#pragma GCC visibility pop
