/* What a message between hosts takes by an MPI: half of there and back, the median, for each size of the arguments. A
 * JSON line each, with the way through two cards that would stand around it: device memory to the host, the message,
 * the host to device memory, and the call of the next kernel, as ACCL+ models it (OSDI '24, 5). Its constants are those
 * of engine.py. Run by tools/bench-streams. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRepetitions = 401 };
static const double kPcieGbytes = 12.8, kPcieUs = 1.0, kInvokeUs = 2.0;

static int by_value(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

int main(int count, char** arguments) {
  int rank;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i < count; ++i) {
    const int bytes = atoi(arguments[i]);
    static double us[kRepetitions];
    unsigned char* const data = malloc((size_t)bytes);
    int right = 1;
    for (int turn = -20; turn < kRepetitions; ++turn) {
      memset(data, rank == 0 ? turn & 127 : 255, (size_t)bytes);
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      if (rank == 0) {
        MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      }
      if (turn >= 0) us[turn] = (MPI_Wtime() - begin) * 1e6 / 2;
      right &= data[0] == (turn & 127) && data[bytes - 1] == (turn & 127);
    }
    free(data);
    int all = 0;
    MPI_Reduce(&right, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank != 0) continue;
    qsort(us, kRepetitions, sizeof us[0], by_value);
    const double mpi = us[kRepetitions / 2];
    const double whole = mpi + kInvokeUs + 2 * (kPcieUs + bytes / kPcieGbytes / 1000);
    printf(
        "{\"system\": \"openmpi\", \"op\": \"host_path\", \"network\": \"shm\", \"ranks\": 2, \"bytes\": %d, "
        "\"buffers\": \"device memory\", \"mpi_us\": %.3f, \"us\": %.3f, \"gbps\": %.2f, \"ratio\": null, "
        "\"limit_ratio\": %.3f, \"verified\": %s}\n",
        bytes, mpi, whole, bytes * 8e-3 / whole, whole / mpi, all ? "true" : "false");
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
