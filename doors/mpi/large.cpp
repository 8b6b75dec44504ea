// Collectives with counts of MPI_Count, which MPI 4 has. Exported: they stand before those of the MPI below, and are
// those with counts of int, unless a rank's block has more bytes, or a reduction more elements, than int counts: these
// are the MPI's own. So all ranks decide alike, though some may describe a block by few elements and some by many.
//
// Those with a count and a displacement for each rank are the MPI's own, but for MPI_Reduce_scatter_c.
#include "doors/mpi/mpi.hpp"

#if MPI_VERSION >= 4

#include <limits>
#include <vector>

namespace {

constexpr MPI_Count kMost = std::numeric_limits<int>::max();

bool fits(MPI_Count count) { return count <= kMost; }

/// Whether int counts the bytes of a block.
bool is_short(MPI_Count count, MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return true;  // to be refused, or not looked at
  MPI_Count size = 0;
  PMPI_Type_size_x(type, &size);
  return size == 0 || count <= kMost / size;
}

bool is_root(MPI_Comm comm, int root) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return root == rank || root == MPI_ROOT;
}

/// Elements of a short block: of more than int counts, there are none with bytes, or they do not matter on this rank.
int narrow(MPI_Count count) { return fits(count) ? static_cast<int>(count) : 0; }

}  // namespace

extern "C" {

int MPI_Bcast_c(void* data, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm) {
  if (!is_short(count, type)) return PMPI_Bcast_c(data, count, type, root, comm);
  return MPI_Bcast(data, narrow(count), type, root, comm);
}

int MPI_Ibcast_c(void* data, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  if (!is_short(count, type)) return PMPI_Ibcast_c(data, count, type, root, comm, request);
  return MPI_Ibcast(data, narrow(count), type, root, comm, request);
}

int MPI_Bcast_init_c(void* data, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
                     MPI_Request* request) {
  if (!is_short(count, type)) return PMPI_Bcast_init_c(data, count, type, root, comm, info, request);
  return MPI_Bcast_init(data, narrow(count), type, root, comm, info, request);
}

int MPI_Gather_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count count,
                 MPI_Datatype type, int root, MPI_Comm comm) {
  const bool goes = is_root(comm, root) ? is_short(count, type) : is_short(send_count, send_type);
  if (!goes) return PMPI_Gather_c(send, send_count, send_type, receive, count, type, root, comm);
  return MPI_Gather(send, narrow(send_count), send_type, receive, narrow(count), type, root, comm);
}

int MPI_Igather_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count count,
                  MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  const bool goes = is_root(comm, root) ? is_short(count, type) : is_short(send_count, send_type);
  if (!goes) return PMPI_Igather_c(send, send_count, send_type, receive, count, type, root, comm, request);
  return MPI_Igather(send, narrow(send_count), send_type, receive, narrow(count), type, root, comm, request);
}

int MPI_Gather_init_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count count,
                      MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  const bool goes = is_root(comm, root) ? is_short(count, type) : is_short(send_count, send_type);
  if (!goes) return PMPI_Gather_init_c(send, send_count, send_type, receive, count, type, root, comm, info, request);
  return MPI_Gather_init(send, narrow(send_count), send_type, receive, narrow(count), type, root, comm, info, request);
}

int MPI_Scatter_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count count,
                  MPI_Datatype type, int root, MPI_Comm comm) {
  const bool goes = is_root(comm, root) ? is_short(send_count, send_type) : is_short(count, type);
  if (!goes) return PMPI_Scatter_c(send, send_count, send_type, receive, count, type, root, comm);
  return MPI_Scatter(send, narrow(send_count), send_type, receive, narrow(count), type, root, comm);
}

int MPI_Iscatter_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count count,
                   MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  const bool goes = is_root(comm, root) ? is_short(send_count, send_type) : is_short(count, type);
  if (!goes) return PMPI_Iscatter_c(send, send_count, send_type, receive, count, type, root, comm, request);
  return MPI_Iscatter(send, narrow(send_count), send_type, receive, narrow(count), type, root, comm, request);
}

int MPI_Scatter_init_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count count,
                       MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  const bool goes = is_root(comm, root) ? is_short(send_count, send_type) : is_short(count, type);
  if (!goes) return PMPI_Scatter_init_c(send, send_count, send_type, receive, count, type, root, comm, info, request);
  return MPI_Scatter_init(send, narrow(send_count), send_type, receive, narrow(count), type, root, comm, info, request);
}

int MPI_Allgather_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count count,
                    MPI_Datatype type, MPI_Comm comm) {
  if (!is_short(count, type)) return PMPI_Allgather_c(send, send_count, send_type, receive, count, type, comm);
  return MPI_Allgather(send, narrow(send_count), send_type, receive, narrow(count), type, comm);
}

int MPI_Iallgather_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count count,
                     MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  if (!is_short(count, type))
    return PMPI_Iallgather_c(send, send_count, send_type, receive, count, type, comm, request);
  return MPI_Iallgather(send, narrow(send_count), send_type, receive, narrow(count), type, comm, request);
}

int MPI_Allgather_init_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count count,
                         MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  if (!is_short(count, type))
    return PMPI_Allgather_init_c(send, send_count, send_type, receive, count, type, comm, info, request);
  return MPI_Allgather_init(send, narrow(send_count), send_type, receive, narrow(count), type, comm, info, request);
}

int MPI_Alltoall_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count count,
                   MPI_Datatype type, MPI_Comm comm) {
  if (!is_short(count, type)) return PMPI_Alltoall_c(send, send_count, send_type, receive, count, type, comm);
  return MPI_Alltoall(send, narrow(send_count), send_type, receive, narrow(count), type, comm);
}

int MPI_Ialltoall_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count count,
                    MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  if (!is_short(count, type)) return PMPI_Ialltoall_c(send, send_count, send_type, receive, count, type, comm, request);
  return MPI_Ialltoall(send, narrow(send_count), send_type, receive, narrow(count), type, comm, request);
}

int MPI_Alltoall_init_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count count,
                        MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  if (!is_short(count, type))
    return PMPI_Alltoall_init_c(send, send_count, send_type, receive, count, type, comm, info, request);
  return MPI_Alltoall_init(send, narrow(send_count), send_type, receive, narrow(count), type, comm, info, request);
}

int MPI_Reduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                 MPI_Comm comm) {
  if (!fits(count)) return PMPI_Reduce_c(send, receive, count, type, op, root, comm);
  return MPI_Reduce(send, receive, narrow(count), type, op, root, comm);
}

int MPI_Ireduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                  MPI_Comm comm, MPI_Request* request) {
  if (!fits(count)) return PMPI_Ireduce_c(send, receive, count, type, op, root, comm, request);
  return MPI_Ireduce(send, receive, narrow(count), type, op, root, comm, request);
}

int MPI_Reduce_init_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                      MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  if (!fits(count)) return PMPI_Reduce_init_c(send, receive, count, type, op, root, comm, info, request);
  return MPI_Reduce_init(send, receive, narrow(count), type, op, root, comm, info, request);
}

int MPI_Allreduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  if (!fits(count)) return PMPI_Allreduce_c(send, receive, count, type, op, comm);
  return MPI_Allreduce(send, receive, narrow(count), type, op, comm);
}

int MPI_Iallreduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                     MPI_Request* request) {
  if (!fits(count)) return PMPI_Iallreduce_c(send, receive, count, type, op, comm, request);
  return MPI_Iallreduce(send, receive, narrow(count), type, op, comm, request);
}

int MPI_Allreduce_init_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                         MPI_Info info, MPI_Request* request) {
  if (!fits(count)) return PMPI_Allreduce_init_c(send, receive, count, type, op, comm, info, request);
  return MPI_Allreduce_init(send, receive, narrow(count), type, op, comm, info, request);
}

int MPI_Scan_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  if (!fits(count)) return PMPI_Scan_c(send, receive, count, type, op, comm);
  return MPI_Scan(send, receive, narrow(count), type, op, comm);
}

int MPI_Iscan_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                MPI_Request* request) {
  if (!fits(count)) return PMPI_Iscan_c(send, receive, count, type, op, comm, request);
  return MPI_Iscan(send, receive, narrow(count), type, op, comm, request);
}

int MPI_Scan_init_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Info info, MPI_Request* request) {
  if (!fits(count)) return PMPI_Scan_init_c(send, receive, count, type, op, comm, info, request);
  return MPI_Scan_init(send, receive, narrow(count), type, op, comm, info, request);
}

int MPI_Exscan_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  if (!fits(count)) return PMPI_Exscan_c(send, receive, count, type, op, comm);
  return MPI_Exscan(send, receive, narrow(count), type, op, comm);
}

int MPI_Iexscan_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                  MPI_Request* request) {
  if (!fits(count)) return PMPI_Iexscan_c(send, receive, count, type, op, comm, request);
  return MPI_Iexscan(send, receive, narrow(count), type, op, comm, request);
}

int MPI_Exscan_init_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                      MPI_Info info, MPI_Request* request) {
  if (!fits(count)) return PMPI_Exscan_init_c(send, receive, count, type, op, comm, info, request);
  return MPI_Exscan_init(send, receive, narrow(count), type, op, comm, info, request);
}

int MPI_Reduce_scatter_block_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                               MPI_Comm comm) {
  if (!fits(count)) return PMPI_Reduce_scatter_block_c(send, receive, count, type, op, comm);
  return MPI_Reduce_scatter_block(send, receive, narrow(count), type, op, comm);
}

int MPI_Ireduce_scatter_block_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                MPI_Comm comm, MPI_Request* request) {
  if (!fits(count)) return PMPI_Ireduce_scatter_block_c(send, receive, count, type, op, comm, request);
  return MPI_Ireduce_scatter_block(send, receive, narrow(count), type, op, comm, request);
}

int MPI_Reduce_scatter_block_init_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                    MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  if (!fits(count)) return PMPI_Reduce_scatter_block_init_c(send, receive, count, type, op, comm, info, request);
  return MPI_Reduce_scatter_block_init(send, receive, narrow(count), type, op, comm, info, request);
}

int MPI_Reduce_scatter_c(const void* send, void* receive, const MPI_Count* counts, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  std::vector<int> each;
  each.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    if (!fits(counts[rank])) return PMPI_Reduce_scatter_c(send, receive, counts, type, op, comm);
    each.push_back(narrow(counts[rank]));
  }
  return MPI_Reduce_scatter(send, receive, each.data(), type, op, comm);
}

}  // extern "C"

#endif
