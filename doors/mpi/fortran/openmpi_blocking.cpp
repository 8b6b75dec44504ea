// Begin, end, and collectives that block, of programs in Fortran.
#include <cstddef>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "doors/mpi/fortran/openmpi.hpp"

using namespace unisono::mpi::fortran;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

namespace unisono::mpi::fortran {

std::vector<MPI_Datatype> types_of(In types, const void* send, MPI_Comm comm) {
  if (send == MPI_IN_PLACE) return {};
  int between = 0;
  int size = 0;
  PMPI_Comm_test_inter(comm, &between);
  if (between != 0) {
    PMPI_Comm_remote_size(comm, &size);
  } else {
    PMPI_Comm_size(comm, &size);
  }
  std::vector<MPI_Datatype> own;
  own.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) own.push_back(PMPI_Type_f2c(types[rank]));
  return own;
}

const MPI_Datatype* kept(std::vector<MPI_Datatype> types) {
  static std::set<std::vector<MPI_Datatype>> known;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  return known.insert(std::move(types)).first->data();
}

}  // namespace unisono::mpi::fortran

#pragma GCC visibility push(default)
extern "C" {

// NOLINTBEGIN(readability-identifier-naming): names of Fortran end in an underscore

void mpi_init_(Out error) { answer(error, MPI_Init(nullptr, nullptr)); }

void mpi_init_thread_(In required, Out provided, Out error) {
  answer(error, MPI_Init_thread(nullptr, nullptr, *required, provided));
}

void mpi_finalize_(Out error) { answer(error, MPI_Finalize()); }

void mpi_barrier_(In comm, Out error) { answer(error, MPI_Barrier(comm_of(comm))); }

void mpi_bcast_(void* data, In count, In type, In root, In comm, Out error) {
  answer(error, MPI_Bcast(place(data), *count, type_of(type), *root, comm_of(comm)));
}

void mpi_reduce_(void* send, void* receive, In count, In type, In op, In root, In comm, Out error) {
  answer(error, MPI_Reduce(place(send), place(receive), *count, type_of(type), op_of(op), *root, comm_of(comm)));
}

void mpi_allreduce_(void* send, void* receive, In count, In type, In op, In comm, Out error) {
  answer(error, MPI_Allreduce(place(send), place(receive), *count, type_of(type), op_of(op), comm_of(comm)));
}

void mpi_reduce_scatter_block_(void* send, void* receive, In count, In type, In op, In comm, Out error) {
  answer(error, MPI_Reduce_scatter_block(place(send), place(receive), *count, type_of(type), op_of(op), comm_of(comm)));
}

void mpi_reduce_scatter_(void* send, void* receive, In counts, In type, In op, In comm, Out error) {
  answer(error, MPI_Reduce_scatter(place(send), place(receive), counts, type_of(type), op_of(op), comm_of(comm)));
}

void mpi_scan_(void* send, void* receive, In count, In type, In op, In comm, Out error) {
  answer(error, MPI_Scan(place(send), place(receive), *count, type_of(type), op_of(op), comm_of(comm)));
}

void mpi_exscan_(void* send, void* receive, In count, In type, In op, In comm, Out error) {
  answer(error, MPI_Exscan(place(send), place(receive), *count, type_of(type), op_of(op), comm_of(comm)));
}

void mpi_gather_(void* send, In send_count, In send_type, void* receive, In count, In type, In root, In comm,
                 Out error) {
  answer(error, MPI_Gather(place(send), *send_count, type_of(send_type), place(receive), *count, type_of(type), *root,
                           comm_of(comm)));
}

void mpi_gatherv_(void* send, In send_count, In send_type, void* receive, In counts, In displacements, In type, In root,
                  In comm, Out error) {
  answer(error, MPI_Gatherv(place(send), *send_count, type_of(send_type), place(receive), counts, displacements,
                            type_of(type), *root, comm_of(comm)));
}

void mpi_scatter_(void* send, In send_count, In send_type, void* receive, In count, In type, In root, In comm,
                  Out error) {
  answer(error, MPI_Scatter(place(send), *send_count, type_of(send_type), place(receive), *count, type_of(type), *root,
                            comm_of(comm)));
}

void mpi_scatterv_(void* send, In counts, In displacements, In send_type, void* receive, In count, In type, In root,
                   In comm, Out error) {
  answer(error, MPI_Scatterv(place(send), counts, displacements, type_of(send_type), place(receive), *count,
                             type_of(type), *root, comm_of(comm)));
}

void mpi_allgather_(void* send, In send_count, In send_type, void* receive, In count, In type, In comm, Out error) {
  answer(error, MPI_Allgather(place(send), *send_count, type_of(send_type), place(receive), *count, type_of(type),
                              comm_of(comm)));
}

void mpi_allgatherv_(void* send, In send_count, In send_type, void* receive, In counts, In displacements, In type,
                     In comm, Out error) {
  answer(error, MPI_Allgatherv(place(send), *send_count, type_of(send_type), place(receive), counts, displacements,
                               type_of(type), comm_of(comm)));
}

void mpi_alltoall_(void* send, In send_count, In send_type, void* receive, In count, In type, In comm, Out error) {
  answer(error, MPI_Alltoall(place(send), *send_count, type_of(send_type), place(receive), *count, type_of(type),
                             comm_of(comm)));
}

void mpi_alltoallv_(void* send, In send_counts, In send_displacements, In send_type, void* receive, In counts,
                    In displacements, In type, In comm, Out error) {
  answer(error, MPI_Alltoallv(place(send), send_counts, send_displacements, type_of(send_type), place(receive), counts,
                              displacements, type_of(type), comm_of(comm)));
}

void mpi_alltoallw_(void* send, In send_counts, In send_displacements, In send_types, void* receive, In counts,
                    In displacements, In types, In comm, Out error) {
  MPI_Comm const of = comm_of(comm);
  void* const from = place(send);
  answer(error, MPI_Alltoallw(from, send_counts, send_displacements, types_of(send_types, from, of).data(),
                              place(receive), counts, displacements, types_of(types, nullptr, of).data(), of));
}

// What `use mpi_f08` goes by.
decltype(mpi_init_) ompi_init_f [[gnu::alias("mpi_init_")]];
decltype(mpi_init_thread_) ompi_init_thread_f [[gnu::alias("mpi_init_thread_")]];
decltype(mpi_finalize_) ompi_finalize_f [[gnu::alias("mpi_finalize_")]];
decltype(mpi_barrier_) ompi_barrier_f [[gnu::alias("mpi_barrier_")]];
decltype(mpi_bcast_) ompi_bcast_f [[gnu::alias("mpi_bcast_")]];
decltype(mpi_reduce_) ompi_reduce_f [[gnu::alias("mpi_reduce_")]];
decltype(mpi_allreduce_) ompi_allreduce_f [[gnu::alias("mpi_allreduce_")]];
decltype(mpi_reduce_scatter_block_) ompi_reduce_scatter_block_f [[gnu::alias("mpi_reduce_scatter_block_")]];
decltype(mpi_reduce_scatter_) ompi_reduce_scatter_f [[gnu::alias("mpi_reduce_scatter_")]];
decltype(mpi_scan_) ompi_scan_f [[gnu::alias("mpi_scan_")]];
decltype(mpi_exscan_) ompi_exscan_f [[gnu::alias("mpi_exscan_")]];
decltype(mpi_gather_) ompi_gather_f [[gnu::alias("mpi_gather_")]];
decltype(mpi_gatherv_) ompi_gatherv_f [[gnu::alias("mpi_gatherv_")]];
decltype(mpi_scatter_) ompi_scatter_f [[gnu::alias("mpi_scatter_")]];
decltype(mpi_scatterv_) ompi_scatterv_f [[gnu::alias("mpi_scatterv_")]];
decltype(mpi_allgather_) ompi_allgather_f [[gnu::alias("mpi_allgather_")]];
decltype(mpi_allgatherv_) ompi_allgatherv_f [[gnu::alias("mpi_allgatherv_")]];
decltype(mpi_alltoall_) ompi_alltoall_f [[gnu::alias("mpi_alltoall_")]];
decltype(mpi_alltoallv_) ompi_alltoallv_f [[gnu::alias("mpi_alltoallv_")]];
decltype(mpi_alltoallw_) ompi_alltoallw_f [[gnu::alias("mpi_alltoallw_")]];

// NOLINTEND(readability-identifier-naming)
}  // extern "C"
#pragma GCC visibility pop
