/* A tool: functions of its own before the library's, which it calls by their other names. */
#include <pshmem.h>
#include <string.h>

#include "check.h"

static int puts_seen, longs_seen, adds_seen, inits_seen, asked;
static size_t bytes_seen;

void shmem_init(void) {
  ++inits_seen;
  pshmem_init();
}

void shmem_putmem(void* dest, const void* source, size_t bytes, int pe) {
  ++puts_seen;
  bytes_seen += bytes;
  pshmem_putmem(dest, source, bytes, pe);
}

void shmem_long_put(long* dest, const long* source, size_t count, int pe) {
  ++longs_seen;
  pshmem_putmem(dest, source, count * sizeof *dest, pe);
}

void shmem_long_atomic_add(long* dest, long value, int pe) {
  ++adds_seen;
  pshmem_long_atomic_add(dest, value, pe);
}

int shmem_my_pe(void) {
  ++asked;
  return pshmem_my_pe();
}

static char box[64];
static long numbers[8];
static long total;

int main(void) {
  shmem_init();
  CHECK(inits_seen == 1);
  shmem_pcontrol(1);
  shmem_pcontrol(2, "words", 3.0);
  const int n = shmem_n_pes(), me = shmem_my_pe(), to = (me + 1) % n;

  /* What the program calls the tool sees, and the library does what it was to do. */
  char text[64] = "";
  memset(text, 'a' + me, sizeof text - 1);
  shmem_putmem(box, text, sizeof text, to);
  shmem_putmem(box, text, 10, to);
  const long values[8] = {me, me + 1, me + 2};
  shmem_put(numbers, values, 8, to); /* chooses shmem_long_put */
  shmem_barrier_all();
  CHECK(box[0] == 'a' + (me + n - 1) % n && box[62] == box[0] && box[63] == 0);
  CHECK(numbers[2] == (me + n - 1) % n + 2);
  CHECK(puts_seen == 2 && bytes_seen == 74 && longs_seen == 1);

  /* What the library calls itself the tool does not see. */
  shmem_long_add(&total, 5, to);
  pshmem_barrier_all();
  CHECK(total == 5 && adds_seen == 0);
  pshmem_barrier_all();
  shmem_long_atomic_add(&total, 2, to);
  pshmem_barrier_all();
  CHECK(total == 7 && adds_seen == 1);
  const int before = asked;
  CHECK(_my_pe() == me && asked == before);

  /* Both names are of one function. */
  CHECK(pshmem_n_pes() == n && pshmem_finalize == shmem_finalize);
  double *memory = pshmem_malloc(sizeof *memory), one = 1 + me;
  pshmem_ctx_double_put(SHMEM_CTX_DEFAULT, memory, &one, 1, to);
  pshmem_barrier_all();
  CHECK(*memory == 1 + (me + n - 1) % n);
  double sum;
  CHECK(pshmem_double_sum_reduce(SHMEM_TEAM_WORLD, &sum, memory, 1) == 0 && sum == n * (n + 1) / 2);
  pshmem_free(memory);
  if (me == 0) printf("right %d\n", n);
  pshmem_finalize();
  return 0;
}
