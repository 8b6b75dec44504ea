#define _GNU_SOURCE
#include "limit_ways.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "../connection.h"

enum {
  kPatience = 20000,
  kPiece = 256 << 10, /* of a kernel copy: it cannot be interrupted */
  kTile = 128 << 10   /* fetched to be added: stays in the second-level cache */
};

void await(_Atomic uint64_t* word, uint64_t least) {
  for (unsigned polls = 0; atomic_load_explicit(word, memory_order_acquire) < least; ++polls) {
    if (polls < kPatience) {
      __builtin_ia32_pause();
    } else {
      sched_yield();
    }
  }
}

struct demand demand_of(enum bench_op op, uint32_t p) {
  const uint32_t others = p - 1;
  switch (op) {
    case BENCH_PINGPONG:
      return (struct demand){.copies = 1, .moved = 1, .put = 1, .one_way = 1};
    case BENCH_STREAM:
      return (struct demand){.copies = BENCH_FLIGHTS, .moved = BENCH_FLIGHTS, .put = BENCH_FLIGHTS, .one_way = 1};
    case BENCH_BCAST:
      return (struct demand){.copies = others, .moved = others, .put = 1, .one_way = 1};
    case BENCH_REDUCE:
      return (struct demand){.sums = others, .added = others, .put = others, .one_way = 1};
    case BENCH_ALLREDUCE: /* one result is summed, the others are copied from it */
      return (struct demand){.sums = others, .copies = others, .added = others, .moved = others, .put = p};
    case BENCH_REDUCE_SCATTER:
    case BENCH_REDUCE_SCATTERV:
      return (struct demand){.sums = p * others, .added = p * others, .put = p * others};
    case BENCH_SCAN: /* each rank adds to its predecessor's */
      return (struct demand){.copies = 1, .sums = others, .added = others, .own = 1, .put = others, .one_way = 1};
    case BENCH_EXSCAN:
      return (struct demand){.copies = 1, .sums = p - 2, .added = p - 2, .moved = 1, .put = others, .one_way = 1};
    case BENCH_GATHER:
    case BENCH_GATHERV:
    case BENCH_SCATTER:
    case BENCH_SCATTERV:
      return (struct demand){.copies = p, .moved = others, .own = 1, .put = others, .one_way = 1};
    case BENCH_ALLGATHER:
    case BENCH_ALLGATHERV:
      return (struct demand){.copies = p * p, .moved = p * others, .own = p, .put = p};
    case BENCH_ALLTOALL:
    case BENCH_ALLTOALLV:
      return (struct demand){.copies = p * p, .moved = p * others, .own = p, .put = p * others};
    case BENCH_PUT: /* every rank moves a block to the next one */
    case BENCH_GET:
      return (struct demand){.copies = p, .moved = p, .put = p};
    case BENCH_INFLIGHT:
    case BENCH_WAITED: {
      const uint32_t moved = BENCH_FLIGHTS * others;
      return (struct demand){.sums = moved, .copies = moved, .added = moved, .moved = moved, .put = BENCH_FLIGHTS * p};
    }
    default:
      return (struct demand){0};
  }
}

#define SUM(type)                                                                                      \
  __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3"))) static void sum_##type( \
      const type* restrict a, const type* restrict b, type* restrict c, size_t n) {                    \
    for (size_t i = 0; i < n; ++i) c[i] = a[i] + b[i];                                                 \
  }
SUM(uint32_t)
SUM(uint64_t)
SUM(float)
SUM(double)

static void add(enum bench_datatype datatype, const void* a, const void* b, void* c, size_t bytes) {
  const size_t n = bytes / bench_element_bytes(datatype);
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

/* By vectors: the string instructions that libraries copy with are slow on lines that another core holds. */
typedef char vector __attribute__((vector_size(64), aligned(1), may_alias));
__attribute__((target_clones("avx512f", "avx2", "default"))) static void copy_lines(char* restrict to,
                                                                                    const char* restrict from,
                                                                                    size_t bytes) {
  size_t at = 0;
  for (; bytes - at >= 4 * sizeof(vector); at += 4 * sizeof(vector)) {
    const vector* const in = (const vector*)(from + at);
    vector* const out = (vector*)(to + at);
    const vector a = in[0], b = in[1], c = in[2], d = in[3];
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
  }
  if (at != bytes) memcpy(to + at, from + at, bytes - at);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static size_t bytes_of(const struct work* work, uint32_t blocks) {
  return blocks * work->slice * bench_element_bytes(work->datatype);
}

static char* allocate(size_t bytes, int fill) {
  char* const memory = bench_allocate_plain(bytes);
  memset(memory, fill, bytes);
  return memory;
}

/* Memory of a process, from its beginning: what is added, what is moved, copies within the rank. The first two have
 * room for the parts of both ends of a pair. */
void work_prepare(struct work* work) {
  const struct demand* const demand = &work->demand;
  if (work->way == WAY_CORE || work->way == WAY_SHARE) {
    work->bytes = bytes_of(work, demand->copies + demand->sums);
  } else {
    work->bytes = bytes_of(work, 2 * demand->added + 2 * demand->moved + demand->own);
  }
  const int adds = work->way == WAY_CORE || work->way == WAY_SHARE ? demand->sums > 0 : demand->added > 0;
  /* Every process has data of its own. */
  work->a = allocate(work->bytes, 1 + (int)work->rank % 8);
  work->b = allocate(adds ? work->bytes : 0, 2);
  work->c = allocate(work->bytes, 0);
  struct process* const self = &work->processes[work->rank];
  self->from = work->a;
  self->to = work->c;
}

void work_free(struct work* work) {
  free(work->a);
  free(work->b);
  free(work->c);
  work->a = work->b = work->c = NULL;
}

static struct process* successor(const struct work* work) { return &work->processes[(work->rank + 1) % work->size]; }

static struct process* predecessor(const struct work* work) {
  return &work->processes[(work->rank + work->size - 1) % work->size];
}

/* Copies between this process and another, whole; errno of why not, or 0. */
static int kernel_copy(const struct process* peer, char* here, char* there, size_t bytes, int writes) {
  while (bytes > 0) {
    struct iovec local = {here, least(bytes, kPiece)}, remote = {there, local.iov_len};
    const ssize_t done = writes ? process_vm_writev(peer->pid, &local, 1, &remote, 1, 0)
                                : process_vm_readv(peer->pid, &local, 1, &remote, 1, 0);
    if (done <= 0) return done == 0 ? EFAULT : errno;
    here += done;
    there += done;
    bytes -= (size_t)done;
  }
  return 0;
}

int work_try_copy(struct work* work) {
  char here = 0;
  struct process* const peer = predecessor(work);
  const int failed = kernel_copy(peer, &here, (char*)&peer->refused, 1, 0);
  return failed != 0 ? failed : kernel_copy(peer, &here, (char*)&peer->refused, 1, 1);
}

static void must(int failed) {
  if (failed != 0) bench_fail("a kernel copy failed: %s", strerror(failed));
}

/* Whether a process writes what is moved into its neighbour's memory; otherwise it reads from its neighbour's. */
static int writes(const struct work* work, uint32_t rank) {
  return work->demand.one_way && work->size > 1 && rank % 2 == 0;
}

static void copy_own(struct work* work) {
  const size_t own = bytes_of(work, work->demand.own), at = work->bytes - own;
  memcpy(work->c + at, work->a + at, own);
}

/* In one direction, the sender of a block writes one half and its receiver reads the other; in both directions, each
 * process reads what it gets. What is added is fetched by tiles. */
static void call_by_copy(struct work* work) {
  static _Alignas(64) char tile[kTile];
  const struct demand* const demand = &work->demand;
  const size_t added = bytes_of(work, demand->added), moved = bytes_of(work, demand->moved);
  struct process* const source = predecessor(work);
  for (size_t at = 0; at < added; at += kTile) {
    const size_t bytes = least(kTile, added - at);
    must(kernel_copy(source, tile, source->from + at, bytes, 0));
    add(work->datatype, tile, work->b + at, work->c + at, bytes);
  }
  const size_t read = 2 * added, written = read + moved;
  if (writes(work, work->rank)) {
    struct process* const target = successor(work);
    must(kernel_copy(target, work->a + written, target->to + written, moved, 1));
  } else {
    must(kernel_copy(source, work->c + read, source->from + read, moved, 0));
  }
  copy_own(work);
}

/* What a process has taken once slot `slot` of `slots` is empty; whole lines but for the end. */
static size_t taken_by(size_t all, size_t slot, size_t slots) {
  return slot + 1 == slots ? all : (size_t)((double)all * (double)(slot + 1) / (double)slots) / 64 * 64;
}

/* One direction: the even process of a pair puts all of both, and the odd one takes it. */
static int is_paired(const struct work* work) { return work->demand.one_way && work->size % 2 == 0; }

static void put_cell(const struct work* work, const char* from, size_t bytes) {
  static uint64_t filled, known; /* cells so far, and of these emptied, as far as it has been seen */
  struct process* const self = &work->processes[work->rank];
  if (filled == known + kCells) {
    /* The other's word is looked at only now, so that it stays with the other. */
    await(&self->drained.value, filled + 1 - kCells);
    known = atomic_load_explicit(&self->drained.value, memory_order_acquire);
  }
  copy_lines(self->cells[filled % kCells], from, bytes);
  atomic_store_explicit(&self->filled.value, ++filled, memory_order_release);
}

/* Takes from the next cell, of `length` bytes, what belongs to `taken` up to `enough`: where several ranks take the
 * same block, this process is so many of them. */
static size_t take_cell(const struct work* work, size_t length, size_t taken, size_t enough, size_t added) {
  static uint64_t drained;
  struct process* const source = predecessor(work);
  await(&source->filled.value, drained + 1);
  const char* const cell = source->cells[drained % kCells];
  while (taken < enough) {
    const size_t bytes = least(length, (taken < added ? least(added, enough) : enough) - taken);
    if (taken < added) {
      add(work->datatype, cell, work->b + taken, work->c + taken, bytes);
    } else {
      copy_lines(work->c + taken, cell, bytes);
    }
    taken += bytes;
  }
  atomic_store_explicit(&source->drained.value, ++drained, memory_order_release);
  return taken;
}

/* What a process puts goes into its own cells; what it takes comes from its neighbour's. */
static void call_through_cells(struct work* work) {
  const struct demand* const demand = &work->demand;
  const int paired = is_paired(work), puts = !paired || work->rank % 2 == 0, takes = !paired || work->rank % 2 == 1;
  const uint32_t ends = paired ? 2 : 1;
  const size_t added = bytes_of(work, ends * demand->added), all = added + bytes_of(work, ends * demand->moved);
  const size_t put = bytes_of(work, ends * demand->put), slots = (put + kCellBytes - 1) / kCellBytes;
  size_t taken = 0;
  for (size_t slot = 0; slot < slots; ++slot) {
    const size_t length = least(kCellBytes, put - slot * kCellBytes);
    if (puts) put_cell(work, work->a + slot * kCellBytes, length);
    if (takes) taken = take_cell(work, length, taken, taken_by(all, slot, slots), added);
  }
  copy_own(work);
}

/* No process waits for another. */
static void call_apart(struct work* work) {
  const size_t sums = bytes_of(work, work->demand.sums), slice = bytes_of(work, 1);
  for (size_t at = 0; at < work->bytes; at += slice) {
    if (at < sums) {
      add(work->datatype, work->a + at, work->b + at, work->c + at, slice);
    } else {
      memcpy(work->c + at, work->a + at, slice);
    }
  }
}

void work_call(struct work* work) {
  if (work->way == WAY_COPY) {
    call_by_copy(work);
  } else if (work->way == WAY_CELLS) {
    call_through_cells(work);
  } else {
    call_apart(work);
  }
  atomic_signal_fence(memory_order_seq_cst); /* every call is done, although nobody reads all results */
}

/* Whether an element holds the data of a rank, or their sum with b. */
static int holds(const struct work* work, size_t at, uint32_t rank, int sum) {
  char a[8], b[8], c[8];
  memset(a, 1 + (int)rank % 8, sizeof a);
  memset(b, 2, sizeof b);
  memcpy(c, a, sizeof c);
  const size_t element = bench_element_bytes(work->datatype);
  if (sum) add(work->datatype, a, b, c, element);
  return memcmp(work->c + at, c, element) == 0;
}

int work_is_right(const struct work* work) {
  if (work->slice == 0 || work->bytes == 0) return 1;
  const struct demand* const demand = &work->demand;
  const size_t element = bench_element_bytes(work->datatype);
  if (work->way == WAY_CORE || work->way == WAY_SHARE) {
    const size_t sums = bytes_of(work, demand->sums);
    return (sums == 0 || holds(work, sums - element, work->rank, 1)) &&
           (sums == work->bytes || holds(work, work->bytes - element, work->rank, 0));
  }
  const uint32_t source = (work->rank + work->size - 1) % work->size;
  const size_t added = bytes_of(work, demand->added), moved = bytes_of(work, demand->moved);
  int right = demand->own == 0 || holds(work, work->bytes - element, work->rank, 0);
  if (work->way == WAY_CELLS) {
    const size_t ends = is_paired(work) ? 2 : 1, all = ends * (added + moved);
    if (ends == 2 && work->rank % 2 == 0) return right;
    if (added > 0) right &= holds(work, ends * added - element, source, 1);
    return right && (moved == 0 || holds(work, all - element, source, 0));
  }
  if (added > 0) right &= holds(work, added - element, source, 1);
  if (moved > 0 && !writes(work, work->rank)) right &= holds(work, 2 * added + moved - element, source, 0);
  if (moved > 0 && writes(work, source)) right &= holds(work, 2 * (added + moved) - element, source, 0);
  return right;
}
