/* Random puts, gets and atomics of all PEs on all PEs, against a model that every PE computes by itself.
 * Each PE has on every PE a slot of its own, which only it writes in a phase; counters are everybody's. What was there
 * in the phase before is read by anybody. */
#include <string.h>

#include "check.h"

enum { kSlot = 96, kMost = 8, kCounters = 5, kOps = 24, kLong = 9000 };

static long long before[kMost * kSlot], now[kMost * kSlot]; /* global variables are symmetric, too */
static long long model_before[kMost][kMost * kSlot], model[kMost][kMost * kSlot];
static unsigned int bits[kCounters];
static unsigned int model_bits[kMost][kCounters];

int main(int argc, char** argv) {
  const int phases = argc > 1 ? atoi(argv[1]) : 20;
  draw_state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  shmem_init();
  const int me = shmem_my_pe(), n = shmem_n_pes();
  CHECK(n <= kMost);
  unsigned long* counters = shmem_calloc(kCounters, sizeof *counters);
  long long* heap = shmem_align(4096, sizeof now);
  unsigned char* bytes = shmem_calloc(kMost, kLong);
  CHECK(counters && heap && bytes && (size_t)heap % 4096 == 0);
  memset(heap, 0, sizeof now);
  unsigned long model_counters[kMost][kCounters] = {{0}};
  static unsigned char model_bytes[kMost][kMost][kLong];
  shmem_barrier_all();

  for (int phase = 0; phase < phases; ++phase) {
    for (int origin = 0; origin < n; ++origin) {
      for (int op = 0; op < kOps; ++op) {
        /* All numbers are drawn by everybody, whatever is done with them. */
        const int kind = (int)draw(9), pe = (int)draw((unsigned)n), first = (int)draw(kSlot / 2),
                  step = 1 + (int)draw(3);
        const int length = (int)draw(kSlot / 2 / 3 + 1), which = (int)draw(kCounters), reader = (int)draw((unsigned)n);
        const long long value = (long long)draw(1u << 30) * 1000003 + origin;
        const int from = (int)draw(kLong), many = (int)draw((unsigned)(kLong - from + 1));
        const int mine = me == origin, place = origin * kSlot + first;
        long long data[kSlot];
        for (int i = 0; i < length; ++i) data[i] = value + i * 17;
        switch (kind) {
          case 0: /* a put of some elements, on the heap */
          case 1: /* and on variables */
            if (mine) {
              if (kind == 0) shmem_longlong_put(heap + place, data, (size_t)length, pe);
              if (kind == 1) shmem_putmem_nbi(now + place, data, (size_t)length * 8, pe);
            }
            if (mine && kind == 0) shmem_put64(now + place, data, (size_t)length, pe);
            for (int i = 0; i < length; ++i) model[pe][place + i] = data[i];
            if (mine && kind == 1) shmem_longlong_put_nbi(heap + place, data, (size_t)length, pe);
            break;
          case 2: /* one element */
            if (mine) shmem_longlong_p(heap + place, value, pe), shmem_longlong_p(now + place, value, pe);
            model[pe][place] = value;
            break;
          case 3: /* with steps */
            if (mine) {
              shmem_longlong_iput(heap + place, data, step, 1, (size_t)length, pe);
              shmem_iput64(now + place, data, step, 1, (size_t)length, pe);
            }
            for (int i = 0; i < length; ++i) model[pe][place + i * step] = data[i];
            break;
          case 4: /* what was there before: by anybody, of anybody */
            if (me == reader) {
              long long got[kSlot] = {0};
              shmem_longlong_get(got, before + place, (size_t)length, pe);
              CHECK(memcmp(got, model_before[pe] + place, (size_t)length * 8) == 0);
              shmem_longlong_iget(got, before + place, 1, step, (size_t)length, pe);
              for (int i = 0; i < length; ++i) CHECK(got[i] == model_before[pe][place + i * step]);
              CHECK(shmem_longlong_g(before + place, pe) == model_before[pe][place]);
            }
            break;
          case 5: /* everybody's counters */
            if (mine && op % 2) shmem_ulong_atomic_add(counters + which, (unsigned long)value, pe);
            if (mine && !(op % 2)) (void)shmem_ulong_atomic_fetch_add(counters + which, (unsigned long)value, pe);
            model_counters[pe][which] += (unsigned long)value;
            break;
          case 6: /* 32 bits */
            if (mine) shmem_uint_atomic_xor(bits + which, (unsigned)value, pe);
            model_bits[pe][which] ^= (unsigned)value;
            break;
          case 7: /* one's own word: what stood there is known */
            if (mine) {
              const long long was = shmem_longlong_atomic_swap(heap + place, value, pe);
              CHECK(was == model[pe][place]);
              CHECK(shmem_longlong_atomic_compare_swap(heap + place, value + 1, 5, pe) == value);
              CHECK(shmem_longlong_atomic_compare_swap(heap + place, value, value + 2, pe) == value);
              CHECK(shmem_longlong_atomic_fetch(heap + place, pe) == value + 2);
              shmem_longlong_atomic_set(now + place, value + 2, pe);
            }
            model[pe][place] = value + 2;
            break;
          case 8: { /* many bytes at any place, which between hosts are not sent with their request */
            static unsigned char long_data[kLong];
            for (int i = 0; i < many; ++i) long_data[i] = (unsigned char)(value + i * 7);
            if (mine) shmem_putmem(bytes + origin * kLong + from, long_data, (size_t)many, pe);
            memcpy(&model_bytes[pe][origin][from], long_data, (size_t)many);
            break;
          }
        }
        /* Puts of one PE to one place keep their order only with a fence. */
        if (mine) shmem_fence();
      }
    }
    shmem_barrier_all();
    CHECK(memcmp(heap, model[me], sizeof now) == 0);
    CHECK(memcmp(now, model[me], sizeof now) == 0);
    CHECK(memcmp(counters, model_counters[me], sizeof model_counters[me]) == 0);
    CHECK(memcmp(bits, model_bits[me], sizeof bits) == 0);
    for (int origin = 0; origin < n; ++origin) {
      CHECK(memcmp(bytes + origin * kLong, model_bytes[me][origin], kLong) == 0);
    }
    memcpy(before, now, sizeof now);
    memcpy(model_before, model, sizeof model);
    shmem_barrier_all();
  }
  unsigned char* far = malloc(kLong);
  shmem_getmem(far, bytes, kLong, n - 1);
  CHECK(memcmp(far, model_bytes[n - 1][0], kLong) == 0);
  free(far);
  shmem_free(bytes);
  if (me == 0) printf("right %d\n", n);
  shmem_finalize();
  return 0;
}
