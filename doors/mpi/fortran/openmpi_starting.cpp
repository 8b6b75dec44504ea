// Collectives that do not block, of programs in Fortran.
#include "doors/mpi/fortran/openmpi.hpp"

using namespace unisono::mpi::fortran;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

#pragma GCC visibility push(default)
extern "C" {

// NOLINTBEGIN(readability-identifier-naming): names of Fortran end in an underscore

void mpi_ibarrier_(In comm, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) { return MPI_Ibarrier(comm_of(comm), made); });
}

void mpi_ibcast_(void* data, In count, In type, In root, In comm, Out request, Out error) {
  begun(request, error,
        [&](MPI_Request* made) { return MPI_Ibcast(place(data), *count, type_of(type), *root, comm_of(comm), made); });
}

void mpi_ireduce_(void* send, void* receive, In count, In type, In op, In root, In comm, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Ireduce(place(send), place(receive), *count, type_of(type), op_of(op), *root, comm_of(comm), made);
  });
}

void mpi_iallreduce_(void* send, void* receive, In count, In type, In op, In comm, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Iallreduce(place(send), place(receive), *count, type_of(type), op_of(op), comm_of(comm), made);
  });
}

void mpi_ireduce_scatter_block_(void* send, void* receive, In count, In type, In op, In comm, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Ireduce_scatter_block(place(send), place(receive), *count, type_of(type), op_of(op), comm_of(comm),
                                     made);
  });
}

void mpi_ireduce_scatter_(void* send, void* receive, In counts, In type, In op, In comm, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Ireduce_scatter(place(send), place(receive), counts, type_of(type), op_of(op), comm_of(comm), made);
  });
}

void mpi_iscan_(void* send, void* receive, In count, In type, In op, In comm, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Iscan(place(send), place(receive), *count, type_of(type), op_of(op), comm_of(comm), made);
  });
}

void mpi_iexscan_(void* send, void* receive, In count, In type, In op, In comm, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Iexscan(place(send), place(receive), *count, type_of(type), op_of(op), comm_of(comm), made);
  });
}

void mpi_igather_(void* send, In send_count, In send_type, void* receive, In count, In type, In root, In comm,
                  Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Igather(place(send), *send_count, type_of(send_type), place(receive), *count, type_of(type), *root,
                       comm_of(comm), made);
  });
}

void mpi_igatherv_(void* send, In send_count, In send_type, void* receive, In counts, In displacements, In type,
                   In root, In comm, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Igatherv(place(send), *send_count, type_of(send_type), place(receive), counts, displacements,
                        type_of(type), *root, comm_of(comm), made);
  });
}

void mpi_iscatter_(void* send, In send_count, In send_type, void* receive, In count, In type, In root, In comm,
                   Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Iscatter(place(send), *send_count, type_of(send_type), place(receive), *count, type_of(type), *root,
                        comm_of(comm), made);
  });
}

void mpi_iscatterv_(void* send, In counts, In displacements, In send_type, void* receive, In count, In type, In root,
                    In comm, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Iscatterv(place(send), counts, displacements, type_of(send_type), place(receive), *count, type_of(type),
                         *root, comm_of(comm), made);
  });
}

void mpi_iallgather_(void* send, In send_count, In send_type, void* receive, In count, In type, In comm, Out request,
                     Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Iallgather(place(send), *send_count, type_of(send_type), place(receive), *count, type_of(type),
                          comm_of(comm), made);
  });
}

void mpi_iallgatherv_(void* send, In send_count, In send_type, void* receive, In counts, In displacements, In type,
                      In comm, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Iallgatherv(place(send), *send_count, type_of(send_type), place(receive), counts, displacements,
                           type_of(type), comm_of(comm), made);
  });
}

void mpi_ialltoall_(void* send, In send_count, In send_type, void* receive, In count, In type, In comm, Out request,
                    Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Ialltoall(place(send), *send_count, type_of(send_type), place(receive), *count, type_of(type),
                         comm_of(comm), made);
  });
}

void mpi_ialltoallv_(void* send, In send_counts, In send_displacements, In send_type, void* receive, In counts,
                     In displacements, In type, In comm, Out request, Out error) {
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Ialltoallv(place(send), send_counts, send_displacements, type_of(send_type), place(receive), counts,
                          displacements, type_of(type), comm_of(comm), made);
  });
}

void mpi_ialltoallw_(void* send, In send_counts, In send_displacements, In send_types, void* receive, In counts,
                     In displacements, In types, In comm, Out request, Out error) {
  MPI_Comm const of = comm_of(comm);
  void* const from = place(send);
  const MPI_Datatype* const from_types = kept(types_of(send_types, from, of));
  const MPI_Datatype* const to_types = kept(types_of(types, nullptr, of));
  begun(request, error, [&](MPI_Request* made) {
    return MPI_Ialltoallw(from, send_counts, send_displacements, from_types, place(receive), counts, displacements,
                          to_types, of, made);
  });
}

// What `use mpi_f08` goes by.
decltype(mpi_ibarrier_) ompi_ibarrier_f [[gnu::alias("mpi_ibarrier_")]];
decltype(mpi_ibcast_) ompi_ibcast_f [[gnu::alias("mpi_ibcast_")]];
decltype(mpi_ireduce_) ompi_ireduce_f [[gnu::alias("mpi_ireduce_")]];
decltype(mpi_iallreduce_) ompi_iallreduce_f [[gnu::alias("mpi_iallreduce_")]];
decltype(mpi_ireduce_scatter_block_) ompi_ireduce_scatter_block_f [[gnu::alias("mpi_ireduce_scatter_block_")]];
decltype(mpi_ireduce_scatter_) ompi_ireduce_scatter_f [[gnu::alias("mpi_ireduce_scatter_")]];
decltype(mpi_iscan_) ompi_iscan_f [[gnu::alias("mpi_iscan_")]];
decltype(mpi_iexscan_) ompi_iexscan_f [[gnu::alias("mpi_iexscan_")]];
decltype(mpi_igather_) ompi_igather_f [[gnu::alias("mpi_igather_")]];
decltype(mpi_igatherv_) ompi_igatherv_f [[gnu::alias("mpi_igatherv_")]];
decltype(mpi_iscatter_) ompi_iscatter_f [[gnu::alias("mpi_iscatter_")]];
decltype(mpi_iscatterv_) ompi_iscatterv_f [[gnu::alias("mpi_iscatterv_")]];
decltype(mpi_iallgather_) ompi_iallgather_f [[gnu::alias("mpi_iallgather_")]];
decltype(mpi_iallgatherv_) ompi_iallgatherv_f [[gnu::alias("mpi_iallgatherv_")]];
decltype(mpi_ialltoall_) ompi_ialltoall_f [[gnu::alias("mpi_ialltoall_")]];
decltype(mpi_ialltoallv_) ompi_ialltoallv_f [[gnu::alias("mpi_ialltoallv_")]];
decltype(mpi_ialltoallw_) ompi_ialltoallw_f [[gnu::alias("mpi_ialltoallw_")]];

// NOLINTEND(readability-identifier-naming)
}  // extern "C"
#pragma GCC visibility pop
