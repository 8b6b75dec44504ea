/* The functions of shmem.h that accesses.c does not try, each with other data on each PE. */
#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static long lock, guarded_count, counted;
static uint64_t signals[8];
static int flags[8];
static int32_t bits_of_int;
static int64_t bits_of_long;

static void signals_and_waits(int me, int n) {
  const int right = (me + 1) % n, left = (me + n - 1) % n;
  double* box = shmem_malloc(1000 * sizeof *box);
  double data[1000];
  for (int turn = 1; turn <= 50; ++turn) {
    for (int i = 0; i < 1000; ++i) data[i] = me * 1000 + i + turn;
    shmem_double_put_signal(box, data, 1000, &signals[0], (uint64_t)turn, SHMEM_SIGNAL_SET, right);
    CHECK(shmem_signal_wait_until(&signals[0], SHMEM_CMP_GE, (uint64_t)turn) == (uint64_t)turn);
    for (int i = 0; i < 1000; ++i) CHECK(box[i] == left * 1000 + i + turn);
    shmem_barrier_all();
  }
  shmem_putmem_signal_nbi(box, data, 8, &signals[1], (uint64_t)me + 1, SHMEM_SIGNAL_ADD, 0);
  if (me == 0) {
    shmem_uint64_wait_until(&signals[1], SHMEM_CMP_EQ, (uint64_t)n * ((uint64_t)n + 1) / 2);
    CHECK(shmem_signal_fetch(&signals[1]) == (uint64_t)n * ((uint64_t)n + 1) / 2);
  }
  /* Each PE sets a flag of every PE. */
  for (int pe = 0; pe < n; ++pe) shmem_int_p(&flags[me], 10 + me, pe);
  int status[8] = {0}, left_over = n, seen = 0;
  size_t found[8];
  while (left_over > 0) {
    if (left_over % 2) {
      const size_t one = shmem_int_wait_until_any(flags, (size_t)n, status, SHMEM_CMP_NE, 0);
      CHECK(one < (size_t)n && flags[one] == 10 + (int)one && !status[one]);
      status[one] = 1;
      ++seen;
      --left_over;
    } else {
      const size_t count = shmem_int_wait_until_some(flags, (size_t)n, found, status, SHMEM_CMP_GT, 9);
      CHECK(count >= 1);
      for (size_t i = 0; i < count; ++i) status[found[i]] = 1, ++seen, --left_over;
    }
  }
  CHECK(seen == n);
  CHECK(shmem_int_wait_until_any(flags, (size_t)n, status, SHMEM_CMP_EQ, 0) == SIZE_MAX);
  CHECK(shmem_int_wait_until_some(flags, (size_t)n, found, status, SHMEM_CMP_EQ, 0) == 0);
  int expected[8];
  for (int pe = 0; pe < n; ++pe) expected[pe] = 10 + pe;
  shmem_int_wait_until_all(flags, (size_t)n, NULL, SHMEM_CMP_GE, 10);
  shmem_int_wait_until_all_vector(flags, (size_t)n, NULL, SHMEM_CMP_EQ, expected);
  CHECK(shmem_int_test_all_vector(flags, (size_t)n, NULL, SHMEM_CMP_EQ, expected) == 1);
  expected[n - 1] = 9;
  CHECK(shmem_int_test_all_vector(flags, (size_t)n, NULL, SHMEM_CMP_EQ, expected) == 0);
  CHECK(shmem_int_test_any_vector(flags, (size_t)n, NULL, SHMEM_CMP_NE, expected) == (size_t)n - 1);
  /* Of several that hold, each has its turn. */
  int turns[8] = {0};
  for (int i = 0; i < 3 * n; ++i) ++turns[shmem_int_test_any(flags, (size_t)n, NULL, SHMEM_CMP_GE, 10)];
  for (int i = 0; i < 3 * n; ++i) ++turns[shmem_int_wait_until_any(flags, (size_t)n, NULL, SHMEM_CMP_GE, 10)];
  for (int pe = 0; pe < n; ++pe) CHECK(turns[pe] == 6);
  CHECK(shmem_int_test_some(flags, (size_t)n, found, NULL, SHMEM_CMP_LT, 11) == 1 && found[0] == 0);
  /* By their old names. */
  shmem_long_p(&counted, 5 + me, right);
  shmem_wait(&counted, 0);
  shmem_long_wait(&counted, me);
  CHECK(counted == 5 + left);
  CHECK(shmem_int_test(flags, SHMEM_CMP_LE, 10) == 1 && shmem_int_test(flags, SHMEM_CMP_GT, 10) == 0);
  shmem_free(box);
}

static void teams(int me, int n) {
  shmem_team_t odd, x, y;
  CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == n);
  CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
  shmem_ctx_t none = SHMEM_CTX_DEFAULT;
  CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &none) != 0 && none == SHMEM_CTX_INVALID);
  shmem_ctx_quiet(none);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n, 1, 0, NULL, 0, &x) != 0 && x == SHMEM_TEAM_INVALID);
  /* A team knows how many contexts were asked for. */
  shmem_team_config_t asked = {3}, told = {-1};
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, &asked, SHMEM_TEAM_NUM_CONTEXTS, &x) == 0);
  CHECK(shmem_team_get_config(x, SHMEM_TEAM_NUM_CONTEXTS, &told) == 0 && told.num_contexts == 3);
  CHECK(shmem_team_split_strided(x, 0, 1, n, &asked, 0, &y) == 0);
  CHECK(shmem_team_get_config(y, SHMEM_TEAM_NUM_CONTEXTS, &told) == 0 && told.num_contexts == 0);
  shmem_sync(y);
  shmem_team_destroy(y);
  shmem_team_destroy(x);
  const int members = shmem_team_n_pes(SHMEM_TEAM_SHARED);
  CHECK(shmem_ptr(&lock, shmem_team_translate_pe(SHMEM_TEAM_SHARED, members - 1, SHMEM_TEAM_WORLD)) != NULL);
  if (n >= 2) {
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, n / 2, NULL, 0, &odd) == 0);
    CHECK((odd == SHMEM_TEAM_INVALID) == (me % 2 == 0));
    if (odd != SHMEM_TEAM_INVALID) {
      CHECK(shmem_team_my_pe(odd) == me / 2 && shmem_team_n_pes(odd) == n / 2);
      CHECK(shmem_team_translate_pe(odd, n / 2 - 1, SHMEM_TEAM_WORLD) == 2 * (n / 2) - 1);
      CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, odd) == -1);
      long mine[2] = {me, me * me}, sum[2];
      CHECK(shmem_long_sum_reduce(odd, sum, mine, 2) == 0);
      long expected[2] = {0, 0};
      for (int pe = 1; pe < n; pe += 2) expected[0] += pe, expected[1] += (long)pe * pe;
      CHECK(sum[0] == expected[0] && sum[1] == expected[1]);
      /* A context of a team names its PEs. */
      shmem_ctx_t ctx;
      CHECK(shmem_team_create_ctx(odd, 0, &ctx) == 0);
      const int next = (me / 2 + 1) % (n / 2);
      shmem_ctx_long_p(ctx, &guarded_count, 70 + me, next);
      shmem_ctx_quiet(ctx);
      shmem_team_sync(odd);
      const int from = shmem_team_translate_pe(odd, (me / 2 + n / 2 - 1) % (n / 2), SHMEM_TEAM_WORLD);
      CHECK(guarded_count == 70 + from);
      CHECK(shmem_ctx_long_atomic_fetch(ctx, &guarded_count, me / 2) == 70 + from);
      shmem_team_t of;
      CHECK(shmem_ctx_get_team(ctx, &of) == 0 && of == odd);
      shmem_ctx_destroy(ctx);
      shmem_team_destroy(odd);
    }
    guarded_count = 0;
  }
  CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &x, NULL, 0, &y) == 0);
  CHECK(shmem_team_my_pe(x) == me % 2 * (n > 1) && shmem_team_my_pe(y) == me / 2);
  int last = -1, source = me * 3;
  CHECK(shmem_int_broadcast(x, &last, &source, 1, shmem_team_n_pes(x) - 1) == 0);
  CHECK(last == 3 * shmem_team_translate_pe(x, shmem_team_n_pes(x) - 1, SHMEM_TEAM_WORLD));
  shmem_team_destroy(x);
  shmem_team_destroy(y);
  shmem_barrier_all();
}

static void collectives(int me, int n) {
  shmem_team_t all = SHMEM_TEAM_WORLD;
  int mine[8], got[64];
  for (int i = 0; i < 8; ++i) mine[i] = me * 100 + i;
  CHECK(shmem_int_fcollect(all, got, mine, 3) == 0);
  for (int i = 0; i < 3 * n; ++i) CHECK(got[i] == i / 3 * 100 + i % 3);
  CHECK(shmem_int_collect(all, got, mine, (size_t)me + 1) == 0);
  for (int pe = 0, at = 0; pe < n; ++pe) {
    for (int i = 0; i <= pe; ++i, ++at) CHECK(got[at] == pe * 100 + i);
  }
  CHECK(shmem_alltoallmem(all, got, mine, sizeof(int)) == 0);
  for (int pe = 0; pe < n; ++pe) CHECK(got[pe] == pe * 100 + me);
  int spread[64], wide[64];
  for (int i = 0; i < 64; ++i) spread[i] = me * 1000 + i, wide[i] = -1;
  CHECK(shmem_int_alltoalls(all, wide, spread, 3, 2, 2) == 0);
  for (int pe = 0; pe < n; ++pe) {
    for (int i = 0; i < 2; ++i) CHECK(wide[(pe * 2 + i) * 3] == pe * 1000 + (me * 2 + i) * 2);
  }
  CHECK(wide[1] == -1);
  CHECK(shmem_int_broadcast(all, got, mine, 8, n - 1) == 0 && got[7] == (n - 1) * 100 + 7);
  /* In place, and of every kind of type. */
  unsigned char bits = (unsigned char)(1 << me);
  CHECK(shmem_uchar_or_reduce(all, &bits, &bits, 1) == 0 && bits == (1 << n) - 1);
  short low = (short)(5 - me), high;
  CHECK(shmem_short_min_reduce(all, &high, &low, 1) == 0 && high == 5 - (n - 1));
  long double part = 1.0L + me, product;
  CHECK(shmem_longdouble_prod_reduce(all, &product, &part, 1) == 0);
  long double whole = 1;
  for (int pe = 0; pe < n; ++pe) whole *= 1.0L + pe;
  CHECK(product == whole);
  double complex z = me + 2.0 * I, total;
  CHECK(shmem_complexd_sum_reduce(all, &total, &z, 1) == 0);
  CHECK(creal(total) == n * (n - 1) / 2 && cimag(total) == 2.0 * n);
  /* Bits of signed types, which have a width in their names. */
  signed char narrow = (signed char)(1 << me), wide_bits;
  CHECK(shmem_or_reduce(all, &wide_bits, &narrow, 1) == 0 && wide_bits == (1 << n) - 1);
  int one = ~(1 << me), none_of;
  CHECK(shmem_and_reduce(all, &none_of, &one, 1) == 0 && none_of == ~((1 << n) - 1));
  int64_t before = 0;
  shmem_atomic_or(&bits_of_int, 1 << me, 0);
  shmem_atomic_fetch_xor_nbi(SHMEM_CTX_DEFAULT, &before, &bits_of_long, (int64_t)1 << (32 + me), 0);
  shmem_barrier_all();
  if (me == 0) CHECK(bits_of_int == (1 << n) - 1 && bits_of_long == (((int64_t)1 << n) - 1) << 32);
  uint64_t key = 0xff00ULL | (uint64_t)me, common;
  CHECK(shmem_uint64_and_reduce(all, &common, &key, 1) == 0 && (common & 0xff00) == 0xff00);
  /* Active sets: the even PEs. */
  static long sync[SHMEM_REDUCE_SYNC_SIZE];
  static double work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
  double value = me + 0.5, maximum = -1;
  shmem_double_max_to_all(&maximum, &value, 1, 0, 0, n, work, sync);
  CHECK(maximum == n - 0.5);
  if (me % 2 == 0) {
    const int evens = (n + 1) / 2;
    long long given = me, sum = -1, list[8];
    for (int turn = 0; turn < 3; ++turn) {
      shmem_longlong_sum_to_all(&sum, &given, 1, 0, 1, evens, NULL, sync);
      CHECK(sum == (long long)evens * (evens - 1));
    }
    shmem_fcollect64(list, &given, 1, 0, 1, evens, sync);
    for (int i = 0; i < evens; ++i) CHECK(list[i] == 2 * i);
    long long kept = 99;
    shmem_broadcast64(&kept, &given, 1, evens - 1, 0, 1, evens, sync);
    CHECK(kept == (me == 2 * (evens - 1) ? 99 : 2 * (evens - 1)));
    shmem_barrier(0, 1, evens, sync);
  }
  shmem_sync_all();
}

static void memory(int me, int n) {
  long* first = shmem_malloc(100 * sizeof(long));
  long* second = shmem_calloc(7, sizeof(long));
  CHECK(first && second && shmem_malloc(0) == NULL);
  for (int i = 0; i < 7; ++i) CHECK(second[i] == 0);
  for (int i = 0; i < 100; ++i) first[i] = me * 1000 + i;
  long* larger = shmem_realloc(first, 1000 * sizeof(long));
  CHECK(larger);
  shmem_barrier_all();
  CHECK(shmem_long_g(larger + 99, n - 1) == (n - 1) * 1000 + 99);
  CHECK(shmem_addr_accessible(larger, 0) == 1 && shmem_addr_accessible(&me, 0) == 0 && shmem_pe_accessible(n) == 0);
  CHECK(shmem_malloc((size_t)1 << 46) == NULL);
  long* there = shmem_ptr(larger, me);
  CHECK(there == larger && shmem_ptr(&me, me) == NULL);
  shmem_free(second);
  shmem_free(larger);
  /* Alignments are those of addresses, up to what the heap has room for. */
  const size_t largest = getenv("SHMEM_SYMMETRIC_SIZE") ? 4096 : (size_t)64 << 20;
  for (size_t alignment = 8; alignment <= largest; alignment *= 2) {
    void* const aligned = shmem_align(alignment, 24);
    CHECK(aligned && (uintptr_t)aligned % alignment == 0);
    shmem_free(aligned);
  }
  CHECK(shmem_align((size_t)128 << 20, 24) == NULL);
  char name[SHMEM_MAX_NAME_LEN];
  shmem_info_get_name(name);
  CHECK(!strcmp(name, SHMEM_VENDOR_STRING));
  long* again = shmem_malloc(8);
  CHECK(again == first);
  shmem_free(again);
}

static void locks(int n) {
  for (int i = 0; i < 30; ++i) {
    shmem_set_lock(&lock);
    const long seen = shmem_long_g(&guarded_count, 0); /* not atomic on purpose */
    shmem_long_p(&guarded_count, seen + 1, 0);
    shmem_clear_lock(&lock);
  }
  shmem_barrier_all();
  CHECK(shmem_long_g(&guarded_count, 0) == 30L * n);
  shmem_barrier_all();
  if (shmem_my_pe() == 0) CHECK(shmem_test_lock(&lock) == 0);
  shmem_barrier_all();
  if (shmem_my_pe() == n - 1) CHECK(shmem_test_lock(&lock) == 1);
  shmem_barrier_all();
  if (shmem_my_pe() == 0) shmem_clear_lock(&lock);
}

static void generic(int me, int n) {
  static float f;
  static unsigned u;
  const int right = (me + 1) % n, left = (me + n - 1) % n;
  shmem_p(&f, 0.5f + (float)me, right);
  shmem_barrier_all();
  CHECK(f == 0.5f + (float)left && shmem_g(&f, left) == 0.5f + (float)((left + n - 1) % n));
  shmem_barrier_all();
  shmem_ctx_t ctx;
  CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
  shmem_atomic_add(ctx, &u, 5u, right);
  shmem_ctx_destroy(ctx);
  shmem_wait_until(&u, SHMEM_CMP_EQ, 5u);
  CHECK(shmem_atomic_fetch_inc(&u, me) == 5u && shmem_atomic_fetch_and(&u, 4u, me) == 6u && u == 4u);
  CHECK(shmem_atomic_swap(&f, 9.0f, me) == 0.5f + (float)left && shmem_atomic_fetch(&f, me) == 9.0f);
  int mine = me, most;
  CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, &most, &mine, 1) == 0 && most == n - 1);
  shmem_barrier_all();
}

int main(void) {
  int provided = -1, major, minor;
  CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE);
  char name[SHMEM_MAX_NAME_LEN];
  shmem_info_get_name(name);
  shmem_info_get_version(&major, &minor);
  CHECK(strncmp(name, "Unisono", 7) == 0 && major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION);
  const int me = shmem_my_pe(), n = shmem_n_pes();
  memory(me, n);
  signals_and_waits(me, n);
  teams(me, n);
  collectives(me, n);
  locks(n);
  generic(me, n);
  if (me == 0) printf("right %d\n", n);
  shmem_finalize();
  return 0;
}
