/* What the machine itself can do: the row that every other row is compared with.
 *
 * Processes bound as the ranks are, as many as there are cores for them, with no communication system at all:
 *
 *   cache_line       half a round trip over two lines, each written by one process: a word there, a word back
 *   memcpy, reduce   one core copies; one core computes c = a + b
 *   share of a call  every core does its part of the copying and adding that the operation consists of, with the
 *                    data already there: no call can be faster, however it is done
 *
 * Commands are those of the other systems; ALGORITHM says which of these: line, core, share. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../connection.h"
#include "../data.h"

enum { kLine = 128, kPatience = 20000 }; /* two lines: the prefetcher fetches pairs */

/* Of all processes. Each word has one writer and never goes back. */
struct shared_word {
  _Alignas(kLine) _Atomic uint64_t value;
};
static struct shared_word* words; /* for each process: one for the ping-pong, one for the barrier */

static struct bench_options options;
static uint32_t rank, size;

/* Waits in pauses; where somebody else has the core it is given away, so that no limit is needed for the wait. */
static void await(_Atomic uint64_t* word, uint64_t least) {
  for (unsigned polls = 0; atomic_load_explicit(word, memory_order_acquire) < least; ++polls) {
    if (polls < kPatience) {
      __builtin_ia32_pause();
    } else {
      sched_yield();
    }
  }
}

static void barrier(void) {
  static uint64_t passed;
  ++passed;
  atomic_store_explicit(&words[2 * rank + 1].value, passed, memory_order_release);
  for (uint32_t i = 0; i < size; ++i) await(&words[2 * i + 1].value, passed);
}

/* Copying and adding of one process. */
struct work {
  enum bench_datatype datatype;
  size_t count;          /* elements of a slice */
  uint32_t copies, sums; /* slices to copy, slices to add */
  char *a, *b, *c;       /* copies + sums slices each */
};

#define SUM(type)                                                                                      \
  __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3"))) static void sum_##type( \
      const type* restrict a, const type* restrict b, type* restrict c, size_t n) {                    \
    for (size_t i = 0; i < n; ++i) c[i] = a[i] + b[i];                                                 \
  }
SUM(uint32_t)
SUM(uint64_t)
SUM(float)
SUM(double)

static void add(enum bench_datatype datatype, const void* a, const void* b, void* c, size_t n) {
  switch (datatype) {
    case BENCH_INT32:
      sum_uint32_t(a, b, c, n);
      break;
    case BENCH_INT64:
      sum_uint64_t(a, b, c, n);
      break;
    case BENCH_FP32:
      sum_float(a, b, c, n);
      break;
    default:
      sum_double(a, b, c, n);
      break;
  }
}

static void do_work(const void* what, uint64_t first, uint64_t calls) {
  const struct work* const work = what;
  const size_t bytes = work->count * bench_element_bytes(work->datatype);
  for (uint64_t i = first; i < first + calls; ++i) {
    size_t at = 0;
    for (uint32_t k = 0; k < work->sums; ++k, at += bytes) {
      add(work->datatype, work->a + at, work->b + at, work->c + at, work->count);
    }
    for (uint32_t k = 0; k < work->copies; ++k, at += bytes) memcpy(work->c + at, work->a + at, bytes);
    atomic_signal_fence(memory_order_seq_cst); /* every call is done, although nobody reads all results */
  }
}

static uint64_t sent; /* words over the line so far; never goes back, as sequence flags do not */

static void ping(const void* what, uint64_t first, uint64_t calls) {
  (void)what;
  (void)first;
  if (rank > 1) return;
  _Atomic uint64_t* const mine = &words[2 * rank].value;
  _Atomic uint64_t* const theirs = &words[2 * (1 - rank)].value;
  const uint64_t end = sent + calls;
  while (sent < end) {
    ++sent;
    if (rank == 0) {
      atomic_store_explicit(mine, sent, memory_order_release);
      await(theirs, sent);
    } else {
      await(theirs, sent);
      atomic_store_explicit(mine, sent, memory_order_release);
    }
  }
}

/* Copies and sums of blocks that a call consists of, over all ranks, at the least. */
static void demand(enum bench_op op, uint32_t p, uint32_t* copies, uint32_t* sums) {
  *copies = *sums = 0;
  switch (op) {
    case BENCH_PINGPONG:
      *copies = 1;
      break;
    case BENCH_BCAST:
      *copies = p - 1;
      break;
    case BENCH_REDUCE:
      *sums = p - 1;
      break;
    case BENCH_ALLREDUCE: /* one result is summed, the others are copied from it */
      *sums = p - 1;
      *copies = p - 1;
      break;
    case BENCH_REDUCE_SCATTER:
    case BENCH_REDUCE_SCATTERV:
      *sums = p * (p - 1);
      break;
    case BENCH_SCAN: /* each rank adds to its predecessor's */
      *copies = 1;
      *sums = p - 1;
      break;
    case BENCH_EXSCAN:
      *copies = p > 1;
      *sums = p > 2 ? p - 2 : 0;
      break;
    case BENCH_GATHER:
    case BENCH_GATHERV:
    case BENCH_SCATTER:
    case BENCH_SCATTERV:
      *copies = p;
      break;
    case BENCH_ALLGATHER:
    case BENCH_ALLGATHERV:
    case BENCH_ALLTOALL:
    case BENCH_ALLTOALLV:
      *copies = p * p;
      break;
    default:
      break;
  }
}

static size_t work_bytes(const struct work* work) {
  return ((size_t)work->copies + work->sums) * work->count * bench_element_bytes(work->datatype);
}

static char* allocate(size_t bytes, int fill) {
  char* const memory = bench_allocate_plain(bytes);
  memset(memory, fill, bytes);
  return memory;
}

/* Whether the last slice holds what it should: bytes 1 + 2, or a copy of bytes 1. */
static int is_right(const struct work* work) {
  const size_t bytes = work_bytes(work);
  if (bytes == 0) return 1;
  char expected[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  char other[8] = {2, 2, 2, 2, 2, 2, 2, 2};
  const size_t element = bench_element_bytes(work->datatype);
  if (work->copies == 0) {
    char sum[8];
    add(work->datatype, expected, other, sum, 1);
    memcpy(expected, sum, sizeof sum);
  }
  return memcmp(work->c + bytes - element, expected, element) == 0;
}

static void measure(const char* line) {
  const struct bench_block block = bench_block_of(line);
  const int datatype = bench_datatype_of(block.datatype);
  static struct work work; /* kept while the command asks for the same again */
  static char key[sizeof block.op + sizeof block.algorithm + 32];
  char wanted[sizeof key];
  snprintf(wanted, sizeof wanted, "%s %s %s %lu", block.op, block.algorithm, block.datatype,
           (unsigned long)block.count);
  const int over_line = strcmp(block.algorithm, "line") == 0;
  const int alone = strcmp(block.algorithm, "core") == 0;
  if (datatype < 0) bench_fail("there is no datatype %s here", block.datatype);

  if (!over_line && strcmp(wanted, key) != 0) {
    free(work.a);
    free(work.b);
    free(work.c);
    memset(&work, 0, sizeof work);
    strcpy(key, wanted);
    work.datatype = (enum bench_datatype)datatype;
    work.count = block.count;
    if (alone) {
      const int adds = strcmp(block.op, "reduce") == 0;
      work.sums = adds ? 1 : 0;
      work.copies = adds ? 0 : 1;
      if (rank > 0) work.sums = work.copies = 0;
    } else {
      const int op = bench_op_of(block.op);
      if (op < 0) bench_fail("there is no operation %s here", block.op);
      demand((enum bench_op)op, options.ranks, &work.copies, &work.sums);
      work.count = (block.count + size - 1) / size;
    }
    const size_t bytes = work_bytes(&work);
    work.a = allocate(bytes, 1);
    work.b = allocate(work.sums == 0 ? 0 : bytes, 2);
    work.c = allocate(bytes, 0);
  }

  const bench_calls calls = over_line ? ping : do_work;
  barrier();
  calls(&work, 0, block.warmup);
  barrier();
  const struct bench_times times = bench_time(&block, calls, &work, block.warmup);
  bench_reply("done %.9f %.9f %.12f %.12f %d -", times.seconds, times.stolen, times.median, times.p99,
              over_line || is_right(&work));
}

int main(int argc, char** argv) {
  bench_die_with_parent();
  options = bench_options_of(argc, argv);
  /* One process for each core that is listed; all of them on as many cores as there may be otherwise. */
  size = 1;
  for (const char* at = options.cores; *at != '\0'; ++at) size += *at == ',';
  words = mmap(NULL, 2 * size * sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (words == MAP_FAILED) bench_fail("there is no memory to share");
  for (uint32_t i = 1; i < size; ++i) {
    const pid_t child = fork();
    if (child < 0) bench_fail("process %u cannot be made", i);
    if (child == 0) {
      bench_die_with_parent();
      rank = i;
      break;
    }
  }
  bench_pin(&options, rank);
  bench_connect(&options, rank, size);
  for (const char* line = bench_read_line(); line != NULL && strcmp(line, "end") != 0; line = bench_read_line()) {
    measure(line);
  }
  /* Process 0 leaves last. */
  if (rank == 0) {
    while (wait(NULL) > 0) {
    }
  }
  return 0;
}
