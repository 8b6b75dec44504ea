/* Blocking collectives of MPI, and communicators that are made and freed, timed as programs make them: run it with the
 * MPI alone, and under `unisono mpirun`.
 *
 *     collectives [MOST_BYTES]
 *
 * Prints a line for each operation and size: microseconds of a call, the median of rounds, on the slowest rank. Results
 * are checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRounds = 7, kBarrier = 0, kCommunicator = 10, kOperations };

static int rank, size;
static float *from, *to;

static int by_time(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void once(int op, int count) {
  switch (op) {
    case kBarrier:
      MPI_Barrier(MPI_COMM_WORLD);
      break;
    case 1:
      MPI_Bcast(to, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
      break;
    case 2:
      MPI_Reduce(from, to, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
      break;
    case 3:
      MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case 4:
      MPI_Allgather(from, count, MPI_FLOAT, to, count, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    case 5:
      MPI_Reduce_scatter_block(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case 6:
      MPI_Alltoall(from, count, MPI_FLOAT, to, count, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    case 7:
      MPI_Gather(from, count, MPI_FLOAT, to, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
      break;
    case 8:
      MPI_Scatter(from, count, MPI_FLOAT, to, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
      break;
    case kCommunicator: {
      MPI_Comm made;
      MPI_Comm_dup(MPI_COMM_WORLD, &made);
      MPI_Comm_free(&made);
      break;
    }
    default:
      MPI_Scan(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
}

static const char* const names[] = {"barrier",  "bcast",  "reduce",  "allreduce", "allgather",   "reduce_scatter",
                                    "alltoall", "gather", "scatter", "scan",      "dup and free"};

static double timed(int op, int count, int repetitions) {
  PMPI_Barrier(MPI_COMM_WORLD);
  const double begun = MPI_Wtime();
  for (int i = 0; i < repetitions; ++i) once(op, count);
  double seconds = (MPI_Wtime() - begun) / repetitions;
  PMPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const long most = argc > 1 ? atol(argv[1]) : 4L << 20;
  from = malloc((size_t)size * (size_t)most);
  to = malloc((size_t)size * (size_t)most);
  for (long i = 0; i < size * most / 4; ++i) from[i] = (float)(rank + 1), to[i] = 0;
  for (int op = 0; op < kOperations; ++op) {
    const int sized = op != kBarrier && op != kCommunicator;
    for (long bytes = 4; bytes <= most; bytes *= 32) {
      const int count = (int)(bytes / 4);
      once(op, count);
      if (op == 3 && to[count - 1] != (float)(size * (size + 1) / 2)) {
        fprintf(stderr, "rank %d: a wrong sum: %f\n", rank, to[count - 1]);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
      const double first = timed(op, count, 5);
      const int repetitions = first > 2e-3 ? 5 : first > 1e-4 ? 100 : 2000;
      double rounds[kRounds];
      for (int round = 0; round < kRounds; ++round) rounds[round] = timed(op, count, repetitions);
      qsort(rounds, kRounds, sizeof rounds[0], by_time);
      if (rank == 0) printf("%-15s %8ld %10.2f\n", names[op], sized ? bytes : 0, 1e6 * rounds[kRounds / 2]);
      if (!sized) break;
    }
  }
  free(from);
  free(to);
  MPI_Finalize();
  return 0;
}
