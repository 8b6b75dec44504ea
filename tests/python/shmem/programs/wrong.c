/* One wrong use, by its name; the last line is reached by none. */
#include <string.h>

#include "check.h"

static long word;

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  long private_word = 0;
  if (!strcmp(what, "before_init")) shmem_long_p(&word, 1, 0);
  if (!strcmp(what, "memory_before_init")) shmem_malloc(8);
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes();
  long* heap = shmem_malloc(64);
  if (!strcmp(what, "stack")) shmem_long_p(&private_word, 1, n - 1);
  if (!strcmp(what, "malloc")) shmem_putmem(malloc(8), &private_word, 8, n - 1);
  if (!strcmp(what, "get_stack")) shmem_long_get(&word, &private_word, 1, n - 1);
  if (!strcmp(what, "beyond")) shmem_putmem(heap, heap, (size_t)1 << 40, n - 1);
  if (!strcmp(what, "pe")) shmem_long_p(&word, 1, n);
  if (!strcmp(what, "negative_pe")) shmem_long_atomic_add(&word, 1, -1);
  if (!strcmp(what, "count")) shmem_long_put(heap, heap, (size_t)-1, 0);
  if (!strcmp(what, "misaligned")) shmem_long_atomic_add((long*)((char*)heap + 4), 1, n - 1);
  if (!strcmp(what, "comparison")) shmem_long_wait_until(&word, 9, 1);
  if (!strcmp(what, "wait_stack")) shmem_long_wait_until(&private_word, SHMEM_CMP_EQ, 1);
  if (!strcmp(what, "signal")) shmem_putmem_signal(heap, heap, 8, (uint64_t*)heap, 1, 7, n - 1);
  if (!strcmp(what, "step")) shmem_long_iput(heap, heap, 0, 1, 2, n - 1);
  if (!strcmp(what, "free")) shmem_free(heap + 1);
  if (!strcmp(what, "free_twice")) shmem_free(heap), shmem_free(heap);
  if (!strcmp(what, "different")) shmem_malloc(me == 0 ? 8 : 16);
  if (!strcmp(what, "alignment")) shmem_align(24, 8);
  if (!strcmp(what, "team")) shmem_team_sync((shmem_team_t)heap);
  if (!strcmp(what, "invalid_team")) shmem_team_sync(SHMEM_TEAM_INVALID);
  if (!strcmp(what, "root")) shmem_long_broadcast(SHMEM_TEAM_WORLD, heap, heap, 1, n);
  if (!strcmp(what, "active_set")) shmem_barrier(0, 1, n, NULL);
  if (!strcmp(what, "context")) shmem_ctx_long_p((shmem_ctx_t)heap, &word, 1, 0);
  if (!strcmp(what, "lock")) shmem_clear_lock(&word);
  if (!strcmp(what, "lock_twice")) shmem_set_lock(&heap[me]), shmem_set_lock(&heap[me]);
  if (!strcmp(what, "split")) shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, n, NULL, 0, &(shmem_team_t){0});
  if (!strcmp(what, "deadline")) shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1);
  if (!strcmp(what, "global_exit")) {
    if (me == n - 1) shmem_global_exit(7);
    shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1);
  }
  if (!strcmp(what, "global_exit_in_barrier")) {
    if (me == 0) shmem_global_exit(7);
    shmem_barrier_all();
  }
  if (!strcmp(what, "no_finalize")) {
    shmem_long_p(&word, 100 + me, (me + 1) % n);
    return 0;
  }
  shmem_barrier_all();
  puts("reached");
  shmem_finalize();
  return 0;
}
