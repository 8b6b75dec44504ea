// Collectives of MPI that move elements. Exported: they stand before those of the MPI below. What travels is bytes, for
// ranks may describe the same elements by different datatypes.
#include "doors/mpi/calls.hpp"

using namespace unisono::mpi;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

namespace {

void give(unisono_call& call, Buffer& buffer) {
  call.src = buffer.data();
  call.src_bytes = buffer.bytes();
}
void take(unisono_call& call, Buffer& buffer) {
  call.dst = buffer.data();
  call.dst_bytes = buffer.bytes();
}
void give_blocks(unisono_call& call, Buffer& buffer) {
  give(call, buffer);
  call.send_counts = buffer.counts();
  call.send_displacements = buffer.displacements();
}
void take_blocks(unisono_call& call, Buffer& buffer) {
  take(call, buffer);
  call.recv_counts = buffer.counts();
  call.recv_displacements = buffer.displacements();
}

/// The door, if arguments that the MPI would refuse are none of this call's.
const Door* rooted_door(MPI_Comm comm, int root) {
  const Door* const door = door_of(comm);
  return door != nullptr && root >= 0 && root < door->size ? door : nullptr;
}

}  // namespace

extern "C" {

int MPI_Barrier(MPI_Comm comm) {
  Entry entry(Function::kBarrier);
  const Door* const door = door_of(comm);
  if (door == nullptr) return PMPI_Barrier(comm);
  entry.carried(0);
  return run(*door, call_of(UNISONO_BARRIER, 0), Function::kBarrier, comm);
}

int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  Entry entry(Function::kBcast);
  const Door* const door = count < 0 ? nullptr : rooted_door(comm, root);
  if (door == nullptr) return PMPI_Bcast(data, count, type, root, comm);
  Buffer buffer(data, count, type);
  if (door->rank == root) buffer.pack();
  unisono_call call = call_of(UNISONO_BCAST);
  call.root = root;
  call.count = buffer.block_bytes();
  take(call, buffer);
  entry.carried(buffer.bytes());
  const int result = run(*door, call, Function::kBcast, comm);
  if (result == MPI_SUCCESS && door->rank != root) buffer.unpack();
  return result;
}

int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
                  MPI_Comm comm) {
  Entry entry(Function::kAllgather);
  const Door* const door = send_count < 0 || count < 0 ? nullptr : door_of(comm);
  if (door == nullptr) return PMPI_Allgather(send, send_count, send_type, receive, count, type, comm);
  Buffer to(receive, door->size, count, type);
  unisono_call call = call_of(UNISONO_ALLGATHER);
  call.count = to.block_bytes();
  call.in_place = send == MPI_IN_PLACE ? 1 : 0;
  Buffer from(send, call.in_place != 0 ? 0 : send_count, call.in_place != 0 ? type : send_type);
  if (call.in_place != 0) {
    to.pack_block(door->rank);
  } else {
    from.pack();
    give(call, from);
  }
  take(call, to);
  entry.carried(to.bytes());
  const int result = run(*door, call, Function::kAllgather, comm);
  if (result == MPI_SUCCESS) to.unpack(call.in_place != 0 ? door->rank : -1);
  return result;
}

int MPI_Allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
                   const int* displacements, MPI_Datatype type, MPI_Comm comm) {
  Entry entry(Function::kAllgatherv);
  const Door* const door = door_of(comm);
  if (door == nullptr) {
    return PMPI_Allgatherv(send, send_count, send_type, receive, counts, displacements, type, comm);
  }
  Buffer to(receive, door->size, counts, displacements, type);
  unisono_call call = call_of(UNISONO_ALLGATHERV);
  call.in_place = send == MPI_IN_PLACE ? 1 : 0;
  Buffer from(send, call.in_place != 0 ? 0 : send_count, call.in_place != 0 ? type : send_type);
  if (call.in_place != 0) {
    to.pack_block(door->rank);
  } else {
    from.pack();
    give(call, from);
  }
  take_blocks(call, to);
  entry.carried(to.bytes());
  const int result = run(*door, call, Function::kAllgatherv, comm);
  if (result == MPI_SUCCESS) to.unpack(call.in_place != 0 ? door->rank : -1);
  return result;
}

int MPI_Gather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
               int root, MPI_Comm comm) {
  Entry entry(Function::kGather);
  const Door* const door = rooted_door(comm, root);
  if (door == nullptr) return PMPI_Gather(send, send_count, send_type, receive, count, type, root, comm);
  const bool is_root = door->rank == root;
  unisono_call call = call_of(UNISONO_GATHER);
  call.root = root;
  call.in_place = is_root && send == MPI_IN_PLACE ? 1 : 0;
  Buffer to(receive, is_root ? door->size : 0, count, is_root ? type : send_type);
  Buffer from(send, call.in_place != 0 ? 0 : send_count, call.in_place != 0 ? type : send_type);
  call.count = is_root ? to.block_bytes() : from.block_bytes();
  if (is_root) take(call, to);
  if (call.in_place != 0) {
    to.pack_block(root);
  } else {
    from.pack();
    give(call, from);
  }
  entry.carried(is_root ? to.bytes() : from.bytes());
  const int result = run(*door, call, Function::kGather, comm);
  if (result == MPI_SUCCESS && is_root) to.unpack(call.in_place != 0 ? root : -1);
  return result;
}

int MPI_Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
                const int* displacements, MPI_Datatype type, int root, MPI_Comm comm) {
  Entry entry(Function::kGatherv);
  const Door* const door = rooted_door(comm, root);
  if (door == nullptr) {
    return PMPI_Gatherv(send, send_count, send_type, receive, counts, displacements, type, root, comm);
  }
  const bool is_root = door->rank == root;
  unisono_call call = call_of(UNISONO_GATHERV);
  call.root = root;
  call.in_place = is_root && send == MPI_IN_PLACE ? 1 : 0;
  Buffer to(receive, is_root ? door->size : 0, counts, displacements, is_root ? type : send_type);
  Buffer from(send, call.in_place != 0 ? 0 : send_count, call.in_place != 0 ? type : send_type);
  if (is_root) {
    take_blocks(call, to);
  } else {
    call.count = from.block_bytes();
  }
  if (call.in_place != 0) {
    to.pack_block(root);
  } else {
    from.pack();
    give(call, from);
  }
  entry.carried(is_root ? to.bytes() : from.bytes());
  const int result = run(*door, call, Function::kGatherv, comm);
  if (result == MPI_SUCCESS && is_root) to.unpack(call.in_place != 0 ? root : -1);
  return result;
}

int MPI_Scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
                int root, MPI_Comm comm) {
  Entry entry(Function::kScatter);
  const Door* const door = rooted_door(comm, root);
  if (door == nullptr) return PMPI_Scatter(send, send_count, send_type, receive, count, type, root, comm);
  const bool is_root = door->rank == root;
  unisono_call call = call_of(UNISONO_SCATTER);
  call.root = root;
  call.in_place = is_root && receive == MPI_IN_PLACE ? 1 : 0;
  Buffer from(send, is_root ? door->size : 0, send_count, is_root ? send_type : type);
  Buffer to(receive, call.in_place != 0 ? 0 : count, call.in_place != 0 ? send_type : type);
  call.count = is_root ? from.block_bytes() : to.block_bytes();
  if (is_root) {
    from.pack();
    give(call, from);
  }
  if (call.in_place == 0) take(call, to);
  entry.carried(is_root ? from.bytes() : to.bytes());
  const int result = run(*door, call, Function::kScatter, comm);
  if (result == MPI_SUCCESS && call.in_place == 0) to.unpack();
  return result;
}

int MPI_Scatterv(const void* send, const int* counts, const int* displacements, MPI_Datatype send_type, void* receive,
                 int count, MPI_Datatype type, int root, MPI_Comm comm) {
  Entry entry(Function::kScatterv);
  const Door* const door = rooted_door(comm, root);
  if (door == nullptr) {
    return PMPI_Scatterv(send, counts, displacements, send_type, receive, count, type, root, comm);
  }
  const bool is_root = door->rank == root;
  unisono_call call = call_of(UNISONO_SCATTERV);
  call.root = root;
  call.in_place = is_root && receive == MPI_IN_PLACE ? 1 : 0;
  Buffer from(send, is_root ? door->size : 0, counts, displacements, is_root ? send_type : type);
  Buffer to(receive, call.in_place != 0 ? 0 : count, call.in_place != 0 ? send_type : type);
  if (is_root) {
    from.pack();
    give_blocks(call, from);
  } else {
    call.count = to.block_bytes();
  }
  if (call.in_place == 0) take(call, to);
  entry.carried(is_root ? from.bytes() : to.bytes());
  const int result = run(*door, call, Function::kScatterv, comm);
  if (result == MPI_SUCCESS && call.in_place == 0) to.unpack();
  return result;
}

int MPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
                 MPI_Comm comm) {
  Entry entry(Function::kAlltoall);
  const Door* const door = send_count < 0 || count < 0 ? nullptr : door_of(comm);
  if (door == nullptr) return PMPI_Alltoall(send, send_count, send_type, receive, count, type, comm);
  unisono_call call = call_of(UNISONO_ALLTOALL);
  call.in_place = send == MPI_IN_PLACE ? 1 : 0;
  Buffer to(receive, door->size, count, type);
  Buffer from(send, call.in_place != 0 ? 0 : door->size, send_count, call.in_place != 0 ? type : send_type);
  call.count = to.block_bytes();
  if (call.in_place != 0) {
    to.pack();
  } else {
    from.pack();
    give(call, from);
  }
  take(call, to);
  entry.carried(to.bytes());
  const int result = run(*door, call, Function::kAlltoall, comm);
  if (result == MPI_SUCCESS) to.unpack();
  return result;
}

int MPI_Alltoallv(const void* send, const int* send_counts, const int* send_displacements, MPI_Datatype send_type,
                  void* receive, const int* counts, const int* displacements, MPI_Datatype type, MPI_Comm comm) {
  Entry entry(Function::kAlltoallv);
  const Door* const door = door_of(comm);
  if (door == nullptr) {
    return PMPI_Alltoallv(send, send_counts, send_displacements, send_type, receive, counts, displacements, type, comm);
  }
  unisono_call call = call_of(UNISONO_ALLTOALLV);
  call.in_place = send == MPI_IN_PLACE ? 1 : 0;
  Buffer to(receive, door->size, counts, displacements, type);
  Buffer from(send, call.in_place != 0 ? 0 : door->size, send_counts, send_displacements,
              call.in_place != 0 ? type : send_type);
  if (call.in_place != 0) {
    to.pack();
  } else {
    from.pack();
    give_blocks(call, from);
  }
  take_blocks(call, to);
  entry.carried(to.bytes());
  const int result = run(*door, call, Function::kAlltoallv, comm);
  if (result == MPI_SUCCESS) to.unpack();
  return result;
}

}  // extern "C"
