/* Several threads of each PE put, get and count at once, on all PEs. */
#include <pthread.h>
#include <string.h>

#include "check.h"

enum { kThreads = 3, kTurns = 60, kWords = 700, kMost = 4 };

static long boxes[kMost][kThreads][kWords];
static long total;
static unsigned marks;

static void* work(void* which) {
  const long thread = *(const int*)which;
  const int me = shmem_my_pe(), n = shmem_n_pes();
  long data[kWords], back[kWords];
  for (int turn = 0; turn < kTurns; ++turn) {
    const int pe = (me + turn + (int)thread) % n;
    const size_t count = (size_t)(1 + (turn * 131 + (int)thread * 37) % kWords);
    for (size_t i = 0; i < count; ++i) data[i] = me * 1000000L + thread * 10000 + turn * 7 + (long)i;
    shmem_long_put(boxes[me][thread], data, count, pe);
    shmem_quiet();
    memset(back, 0, sizeof back);
    shmem_long_get(back, boxes[me][thread], count, pe);
    CHECK(memcmp(back, data, count * sizeof *data) == 0);
    shmem_long_atomic_add(&total, thread + 1, pe);
    (void)shmem_uint_atomic_fetch_add(&marks, 1u, pe);
  }
  shmem_quiet();
  return NULL;
}

int main(void) {
  int provided;
  shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
  CHECK(provided == SHMEM_THREAD_MULTIPLE && shmem_n_pes() <= kMost);
  pthread_t threads[kThreads];
  int numbers[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  shmem_barrier_all();
  long sum, all_marks, mine = (long)marks;
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &total, 1);
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all_marks, &mine, 1);
  const int n = shmem_n_pes();
  CHECK(sum == (long)n * kTurns * kThreads * (kThreads + 1) / 2 && all_marks == (long)n * kTurns * kThreads);
  if (shmem_my_pe() == 0) printf("right %d\n", n);
  shmem_finalize();
  return 0;
}
