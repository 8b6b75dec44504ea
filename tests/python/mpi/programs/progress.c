/* One rank waits in a collective, which a shim may carry, while another is in a long send to it, which is the MPI's:
 * the send needs that the rank that waits makes progress in the MPI. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kElements = 4 << 20 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int* data = malloc(kElements * sizeof *data);
  for (int turn = 0; turn < 4; ++turn) {
    const int receiver = turn % 2, sender = 1 - receiver;
    int one = rank + 1, all = 0;
    MPI_Request request;
    if (rank == receiver) MPI_Irecv(data, kElements, MPI_INT, sender, 7, MPI_COMM_WORLD, &request);
    if (rank == sender) {
      for (int i = 0; i < kElements; ++i) data[i] = i + turn;
      MPI_Send(data, kElements, MPI_INT, receiver, 7, MPI_COMM_WORLD);
    }
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == receiver) {
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (data[kElements - 1] != kElements - 1 + turn) MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (all != size * (size + 1) / 2) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  free(data);
  printf("right\n");
  MPI_Finalize();
  return 0;
}
