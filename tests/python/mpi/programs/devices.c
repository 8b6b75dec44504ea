/* A little of everything, for ranks whose collectives are carried by simulated hardware. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  float mine[100], sums[100], from_last[100], all[16];
  for (int i = 0; i < 100; ++i) mine[i] = from_last[i] = (float)(i + rank);
  MPI_Allreduce(mine, sums, 100, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 100; ++i) wrong |= sums[i] != (float)(size * i + size * (size - 1) / 2);

  MPI_Comm backwards;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards);
  MPI_Request request;
  MPI_Ibcast(from_last, 100, MPI_FLOAT, 0, backwards, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < 100; ++i) wrong |= from_last[i] != (float)(i + size - 1);
  MPI_Allgather(&mine[1], 1, MPI_FLOAT, all, 1, MPI_FLOAT, backwards);
  for (int i = 0; i < size; ++i) wrong |= all[i] != (float)(size - i);

  int counts[16], places[16];
  for (int i = 0; i < size; ++i) counts[i] = 1, places[i] = i;
  MPI_Gatherv(&mine[2], 1, MPI_FLOAT, all, counts, places, MPI_FLOAT, 0, MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < size; ++i) wrong |= all[i] != (float)(2 + i);
  MPI_Comm_free(&backwards);
  if (!wrong) printf("right\n");
  MPI_Finalize();
  return wrong;
}
