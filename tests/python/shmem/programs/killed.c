/* PE 1 is killed, and the others are in the function that the argument names. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static long word, lock;

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  shmem_init();
  const int me = shmem_my_pe();
  if (!strcmp(what, "lock") && me == 1) shmem_set_lock(&lock);
  shmem_barrier_all();
  if (me == 1) kill(getpid(), SIGKILL);
  if (!strcmp(what, "wait_until")) shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1);
  if (!strcmp(what, "test"))
    while (!shmem_long_test(&word, SHMEM_CMP_EQ, 1)) continue;
  if (!strcmp(what, "barrier")) shmem_barrier_all();
  if (!strcmp(what, "lock")) shmem_set_lock(&lock);
  if (!strcmp(what, "atomic"))
    while (shmem_long_atomic_fetch(&word, 1) != 1) continue;
  if (!strcmp(what, "get"))
    while (shmem_long_g(&word, 1) != 1) continue;
  if (!strcmp(what, "put"))
    for (;;) shmem_long_p(&word, 2, 1), shmem_quiet();
  if (!strcmp(what, "reduce")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &word, &lock, 1);
  puts("went on");
  return 0;
}
