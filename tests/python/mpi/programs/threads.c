/* MPI_THREAD_MULTIPLE: threads with a communicator of each, which come and go. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { kThreads = 3, kTurns = 200 };

static MPI_Comm comms[kThreads];
static int rank, size, wrong;

static void* work(void* number) {
  const int own = (int)(long)number;
  for (int i = 0; i < kTurns; ++i) {
    int mine = rank + own + i, all = 0;
    if (i % 3 == 0) {
      MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comms[own]);
    } else {
      MPI_Request request;
      int flag = 0;
      MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comms[own], &request);
      while (i % 3 == 1 && !flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (all != size * (size - 1) / 2 + size * (own + i)) wrong = 1;
    if (i % 50 == 0) { /* a handle that is used again for another communicator */
      MPI_Comm next;
      MPI_Comm_split(comms[own], 0, i % 100 ? rank : -rank, &next);
      MPI_Comm_free(&comms[own]);
      comms[own] = next;
      int place, first = -1;
      MPI_Comm_rank(comms[own], &place);
      if (place == 0) first = rank;
      MPI_Bcast(&first, 1, MPI_INT, 0, comms[own]);
      if (first != (i % 100 ? 0 : size - 1)) wrong = 1;
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  if (provided == MPI_THREAD_MULTIPLE) {
    for (long i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  } else {
    for (long i = 0; i < kThreads; ++i) work((void*)i);
  }
  for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&comms[i]);
  if (!wrong) printf("right\n");
  MPI_Finalize();
  return 0;
}
