/* Short collectives of several hosts, which switches aggregate: on all ranks, on parts of them, and not blocking. The
 * argument: rounds. Data differ on every rank and in every round. Prints "right N", N calls of all ranks that a switch
 * may carry. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kElements = 500 };

static int wrong;

static void check(const char* call, int round, double got, double wanted) {
  if (got == wanted) return;
  if (!wrong) fprintf(stderr, "round %d: %s gives %g, %g is right\n", round, call, got, wanted);
  wrong = 1;
}

/* Returns how many calls it has made. */
static int all_calls(MPI_Comm comm, int round) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const double ranks = size * (size - 1) / 2.0;
  const int root = round % size, at = round % kElements;
  double mine[kElements], sum[kElements], from_root[kElements];
  long least[4] = {rank + round, 7 - rank, rank, 1000}, all_least[4];
  MPI_Request requests[3];
  for (int i = 0; i < kElements; ++i) {
    mine[i] = rank * (i + 1.0) + round;
    from_root[i] = rank == root ? root + i + round : -1;
  }
  MPI_Allreduce(mine, sum, kElements, MPI_DOUBLE, MPI_SUM, comm);
  check("MPI_Allreduce", round, sum[at], ranks * (at + 1.0) + size * (double)round);
  MPI_Bcast(from_root, kElements, MPI_DOUBLE, root, comm);
  check("MPI_Bcast", round, from_root[at], root + at + round);
  sum[at] = -1;
  MPI_Reduce(mine, sum, kElements, MPI_DOUBLE, MPI_SUM, root, comm);
  check("MPI_Reduce", round, sum[at], rank == root ? ranks * (at + 1.0) + size * (double)round : -1);
  MPI_Barrier(comm);
  MPI_Iallreduce(mine, sum, kElements, MPI_DOUBLE, MPI_MAX, comm, requests);
  MPI_Iallreduce(least, all_least, 4, MPI_LONG, MPI_MIN, comm, requests + 1);
  MPI_Ibarrier(comm, requests + 2);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  check("MPI_Iallreduce", round, sum[at], (size - 1) * (at + 1.0) + round);
  check("MPI_Iallreduce", round, (double)all_least[1], 8 - size);
  MPI_Allreduce(MPI_IN_PLACE, mine, kElements, MPI_DOUBLE, MPI_SUM, comm);
  check("MPI_Allreduce in place", round, mine[at], ranks * (at + 1.0) + size * (double)round);
  return 8;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  int rank, size, calls = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm part, same;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
  for (int round = 0; round < rounds; ++round) {
    calls += all_calls(MPI_COMM_WORLD, round);
    all_calls(part, round);
    if (round % 20 == 0) {
      MPI_Comm_dup(MPI_COMM_WORLD, &same);
      calls += all_calls(same, round);
      MPI_Barrier(same);
      MPI_Comm_free(&same);
    }
    if (rank == 0 && round == rounds / 4) {
      printf("begun\n");
      fflush(stdout);
    }
  }
  MPI_Comm_free(&part);
  if (!wrong) printf("right %d\n", calls);
  MPI_Finalize();
  return wrong;
}
