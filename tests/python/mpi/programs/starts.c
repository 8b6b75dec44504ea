/* The first collective on a communicator is one that is started: it may not wait for a rank that starts it later, when
 * it has had a message. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Group all;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  const int grid[1] = {size}, around[1] = {1};
  for (int how = 0; how < 7; ++how) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request made = MPI_REQUEST_NULL, started;
    if (how == 0) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (how == 1) MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    if (how == 2) MPI_Comm_create(MPI_COMM_WORLD, all, &comm);
    if (how == 3) MPI_Comm_create_group(MPI_COMM_WORLD, all, 1, &comm);
    if (how == 4) MPI_Cart_create(MPI_COMM_WORLD, 1, grid, around, 0, &comm);
    if (how == 5) MPI_Comm_idup(MPI_COMM_WORLD, &comm, &made);
    if (how == 6) MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    MPI_Wait(&made, MPI_STATUS_IGNORE);
    int word = rank, sum = 0, there = rank;
    if (rank == 1) MPI_Recv(&there, 1, MPI_INT, 0, how, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iallreduce(&word, &sum, 1, MPI_INT, MPI_SUM, comm, &started);
    if (rank == 0) MPI_Send(&there, 1, MPI_INT, 1, how, MPI_COMM_WORLD);
    MPI_Wait(&started, MPI_STATUS_IGNORE);
    wrong |= sum != size * (size - 1) / 2;
    MPI_Comm_free(&comm);
  }
  MPI_Group_free(&all);
  if (!wrong) printf("right\n");
  MPI_Finalize();
  return wrong;
}
