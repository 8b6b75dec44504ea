// The forms without a type, in C++.
#include "check.h"

static float number;
static unsigned word;
static long box[3];
static int bits;

int main() {
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
  shmem_p(&number, 0.5F + static_cast<float>(me), right);
  const long mine[3] = {me, me + 1L, me + 2L};
  shmem_put(box, mine, 3, right);
  shmem_barrier_all();
  CHECK(number == 0.5F + static_cast<float>(left) && shmem_g(&number, right) == 0.5F + static_cast<float>(me));
  long got[3];
  shmem_get(SHMEM_CTX_DEFAULT, got, box, 3, right);
  CHECK(got[2] == me + 2 && box[0] == left);
  shmem_barrier_all();
  shmem_atomic_add(&word, 6U, right);
  shmem_wait_until(&word, SHMEM_CMP_EQ, 6U);
  CHECK(shmem_atomic_fetch_or(&word, 1U, me) == 6U && shmem_atomic_compare_swap(&word, 7U, 9U, me) == 7U);
  CHECK(shmem_test(&word, SHMEM_CMP_EQ, 9U) == 1 &&
        shmem_atomic_swap(&number, 2.0F, me) == 0.5F + static_cast<float>(left));
  double part = me + 0.25, sum = 0;
  unsigned short own = static_cast<unsigned short>(me), all[8];
  CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum, &part, 1) == 0 && sum == n * (n - 1) / 2 + 0.25 * n);
  CHECK(shmem_fcollect(SHMEM_TEAM_WORLD, all, &own, 1) == 0 && all[n - 1] == n - 1);
  int before = 0;
  shmem_atomic_fetch_or_nbi(&before, &bits, 1 << me, 0);
  shmem_sync(SHMEM_TEAM_WORLD);
  if (me == 0) CHECK(shmem_atomic_fetch(&bits, 0) == (1 << n) - 1);
  int own_bits = 1 << me, all_bits = 0;
  CHECK(shmem_xor_reduce(SHMEM_TEAM_WORLD, &all_bits, &own_bits, 1) == 0 && all_bits == (1 << n) - 1);
  if (me == 0) printf("right %d\n", n);
  shmem_finalize();
  return 0;
}
