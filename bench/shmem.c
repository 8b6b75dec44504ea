/* Put and get of 8 bytes to a line that the peer holds, beside a store and a load of such a line.
 *
 *   unisono run -n 2 build/release/bench/bench_shmem [ROUNDS]
 *
 * In each round PE 1 writes 64 lines of its heap, so that its core holds them. Then PE 0 goes to each once, in an order
 * that no prefetcher knows: by stores, with a fence after the last; by shmem_long_p, with shmem_quiet after the last;
 * by a load that the next one waits for; by shmem_long_g. The four take turns. A line of JSON for each says nanoseconds
 * for one line, the median of all rounds and the quartiles; two more say the ratios. Each PE stays on a core of its
 * own. */
#define _GNU_SOURCE
#include <sched.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kLines = 64, kWords = 8, kStride = 4, kWays = 4, kMostRounds = 100000 };

static const char* const kNames[kWays] = {"store", "put", "load", "get"};
static double times[kWays][kMostRounds];
static uint64_t turn, answer;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void stay_on_a_core(int number) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || seen++ != number) continue;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

/* Goes to all lines in one of the ways. What was read is returned, so that it is read. */
static long visit(int way, long* lines, long* there, const int* order) {
  long sum = 0;
  for (int i = 0; i < kLines; ++i) {
    const int at = order[i] * kWords * kStride;
    switch (way) {
      case 0:
        *(volatile long*)(there + at) = i;
        break;
      case 1:
        shmem_long_p(lines + at, i, 1);
        break;
      case 2: /* 0 stands there: the next address is known when this one has come */
        sum += *(volatile long*)(there + at + sum);
        break;
      default:
        sum += shmem_long_g(lines + at + sum, 1);
    }
  }
  if (way == 0) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (way == 1) shmem_quiet();
  return sum;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 20000;
  shmem_init();
  if (shmem_n_pes() != 2 || rounds < 1 || rounds > kMostRounds) {
    fprintf(stderr, "bench_shmem: two PEs, and 1 to %d rounds, are needed\n", kMostRounds);
    return 2;
  }
  const int me = shmem_my_pe();
  stay_on_a_core(me);
  long* lines = shmem_align(4096, sizeof(long) * kLines * kWords * kStride);
  long* there = shmem_ptr(lines, 1);
  if (there == NULL) {
    fprintf(stderr, "bench_shmem: both PEs must be on one host\n");
    return 2;
  }
  int order[kLines];
  for (int i = 0; i < kLines; ++i) order[i] = (i * 37 + 11) % kLines;
  long read = 0;
  for (int round = 0; round < rounds * kWays; ++round) {
    if (me == 1) {
      for (int i = 0; i < kLines; ++i) *(volatile long*)(lines + i * kWords * kStride) = 0;
      shmem_uint64_atomic_set(&turn, (uint64_t)round + 1, 0);
      while (__atomic_load_n(&answer, __ATOMIC_ACQUIRE) != (uint64_t)round + 1) continue;
    } else {
      while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != (uint64_t)round + 1) continue;
      const double begin = now();
      read += visit(round % kWays, lines, there, order);
      times[round % kWays][round / kWays] = (now() - begin) / kLines;
      shmem_uint64_atomic_set(&answer, (uint64_t)round + 1, 1);
    }
  }
  if (me == 0) {
    double middle[kWays];
    for (int way = 0; way < kWays; ++way) {
      qsort(times[way], (size_t)rounds, sizeof(double), by_value);
      middle[way] = times[way][rounds / 2];
      printf("{\"op\": \"%s\", \"bytes\": 8, \"ns\": %.1f, \"quartiles\": [%.1f, %.1f], \"rounds\": %d}\n", kNames[way],
             middle[way], times[way][rounds / 4], times[way][rounds * 3 / 4], rounds);
    }
    printf("{\"ratio\": \"put/store\", \"value\": %.3f}\n", middle[1] / middle[0]);
    printf("{\"ratio\": \"get/load\", \"value\": %.3f}\n", middle[3] / middle[2]);
    if (read != 0) return 1;
  }
  shmem_finalize();
  return 0;
}
