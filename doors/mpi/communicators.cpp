// Functions of MPI that make communicators. Exported: they stand before those of the MPI below, which do the work. A
// door is made here, where all ranks of the new communicator are in a call that may wait for the others; a non-blocking
// collective may not. Communicators that are made otherwise (MPI_Comm_idup) get theirs with their first blocking one.
#include "doors/mpi/door.hpp"
#include "doors/mpi/mpi.hpp"

namespace {

int with_door(int result, const MPI_Comm* made) {
  if (result == MPI_SUCCESS && *made != MPI_COMM_NULL) unisono::mpi::door_of(*made);
  return result;
}

}  // namespace

extern "C" {

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) { return with_door(PMPI_Comm_dup(comm, made), made); }

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  return with_door(PMPI_Comm_dup_with_info(comm, info, made), made);
}

int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm* made) {
  return with_door(PMPI_Comm_split(comm, colour, key, made), made);
}

int MPI_Comm_split_type(MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm* made) {
  return with_door(PMPI_Comm_split_type(comm, kind, key, info, made), made);
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
  return with_door(PMPI_Comm_create(comm, group, made), made);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  return with_door(PMPI_Comm_create_group(comm, group, tag, made), made);
}

int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm* made) {
  return with_door(PMPI_Intercomm_merge(comm, high, made), made);
}

int MPI_Cart_create(MPI_Comm comm, int dimensions, const int* sizes, const int* periods, int reorder, MPI_Comm* made) {
  return with_door(PMPI_Cart_create(comm, dimensions, sizes, periods, reorder, made), made);
}

int MPI_Cart_sub(MPI_Comm comm, const int* remain, MPI_Comm* made) {
  return with_door(PMPI_Cart_sub(comm, remain, made), made);
}

int MPI_Graph_create(MPI_Comm comm, int nodes, const int* index, const int* edges, int reorder, MPI_Comm* made) {
  return with_door(PMPI_Graph_create(comm, nodes, index, edges, reorder, made), made);
}

int MPI_Dist_graph_create(MPI_Comm comm, int nodes, const int* sources, const int* degrees, const int* destinations,
                          const int* weights, MPI_Info info, int reorder, MPI_Comm* made) {
  return with_door(PMPI_Dist_graph_create(comm, nodes, sources, degrees, destinations, weights, info, reorder, made),
                   made);
}

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int* sources, const int* in_weights, int out,
                                   const int* destinations, const int* out_weights, MPI_Info info, int reorder,
                                   MPI_Comm* made) {
  return with_door(PMPI_Dist_graph_create_adjacent(comm, in, sources, in_weights, out, destinations, out_weights, info,
                                                   reorder, made),
                   made);
}

}  // extern "C"
