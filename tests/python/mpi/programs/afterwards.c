/* A rank that has ended a blocking collective, which a shim may carry, goes on to wait in the MPI for a rank that has
 * not: nothing may be missing that the first one has still to send. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kElements = 1 << 20 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, wrong = 0, word = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int* data = malloc(kElements * sizeof *data);
  int* sums = malloc(kElements * sizeof *sums);
  for (int turn = 0; turn < 4; ++turn) {
    const int root = turn % size;
    for (int i = 0; i < kElements; ++i) data[i] = rank == root ? i + turn : -1;
    MPI_Bcast(data, kElements, MPI_INT, root, MPI_COMM_WORLD);
    wrong |= data[kElements - 1] != kElements - 1 + turn;
    /* The root waits for all others. */
    for (int i = 1; rank == root && i < size; ++i) {
      MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank != root) MPI_Send(&rank, 1, MPI_INT, root, 1, MPI_COMM_WORLD);
    for (int i = 0; i < kElements; ++i) data[i] = i + rank;
    MPI_Reduce(data, sums, kElements, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    /* All others wait for the root. */
    if (rank == root) wrong |= sums[7] != 7 * size + size * (size - 1) / 2;
    if (rank == root) {
      for (int i = 0; i < size; ++i) {
        if (i != root) MPI_Send(&rank, 1, MPI_INT, i, 2, MPI_COMM_WORLD);
      }
    } else {
      MPI_Recv(&word, 1, MPI_INT, root, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Allreduce(data, sums, kElements, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong |= sums[7] != 7 * size + size * (size - 1) / 2;
    /* A ring, whose first member waits for the last. */
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 3, &word, 1, MPI_INT, (rank + size - 1) % size, 3,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  free(data);
  free(sums);
  if (!wrong) printf("right\n");
  MPI_Finalize();
  return wrong;
}
