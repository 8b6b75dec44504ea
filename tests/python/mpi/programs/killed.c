/* A rank is killed while the others wait for it in a collective. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, all;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 1000; ++i) {
    if (i == 500 && rank == 1) raise(SIGKILL);
    MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  printf("not killed\n");
  MPI_Finalize();
  return 0;
}
