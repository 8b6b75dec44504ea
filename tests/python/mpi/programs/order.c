/* Persistent collectives that ranks start in orders of their own, as MPI 4 allows; blocking ones between them. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

enum { kCalls = 5, kCount = 300 };

static int rank, size;
static int given[kCount], sums[kCount], told[kCount], around[2 * kCount], got[2 * kCount];
static MPI_Request requests[kCalls];

static void check(int right, const char* what, int turn) {
  if (right) return;
  printf("rank %d: %s is wrong in turn %d\n", rank, what, turn);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm circle;
  const int around_all[1] = {1};
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, around_all, 0, &circle);
  INIT(Allreduce)(given, sums, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  INIT(Bcast)(told, kCount, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  INIT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  INIT(Neighbor_alltoall)(around, kCount, MPI_INT, got, kCount, MPI_INT, circle, MPI_INFO_NULL, &requests[3]);
  INIT(Barrier)(circle, MPI_INFO_NULL, &requests[4]);
  for (int turn = 0; turn < 20; ++turn) {
    for (int i = 0; i < kCount; ++i) {
      given[i] = rank * 1000 + i + turn;
      told[i] = rank == size - 1 ? i * turn : -1;
      around[i] = around[kCount + i] = rank * 7 + i - turn;
    }
    memset(got, 0, sizeof got);
    for (int i = 0; i < kCalls; ++i) {
      MPI_Start(&requests[(rank % 2 == 0 ? i : kCalls - 1 - i) * (turn % 4 + 1) % kCalls]);
      int one = 1, all = 0;
      if (i == 2) {
        MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        check(all == size, "allreduce", turn);
      }
    }
    MPI_Waitall(kCalls, requests, MPI_STATUSES_IGNORE);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int i = 0; i < kCount; ++i) {
      check(sums[i] == 1000 * (size * (size - 1) / 2) + size * (i + turn), "allreduce_init", turn);
      check(told[i] == i * turn, "bcast_init", turn);
      check(got[i] == left * 7 + i - turn && got[kCount + i] == right * 7 + i - turn, "neighbor_alltoall_init", turn);
    }
  }
  for (int i = 0; i < kCalls; ++i) MPI_Request_free(&requests[i]);
  MPI_Comm_free(&circle);
  printf("right\n");
  MPI_Finalize();
  return 0;
}
