/* What a call of the benchmark moves, and what must come of it.
 *
 * Every element is a small whole number that differs by rank, block, index and seed, so that sums are
 * exact in any order and in every datatype. The first element of what a rank contributes is a stamp: it
 * also differs by call, so that what stands in memory after a thousand calls tells that the last one was done. */
#ifndef UNISONO_BENCH_DATA_H
#define UNISONO_BENCH_DATA_H

#include <stddef.h>
#include <stdint.h>

enum bench_op {
  BENCH_PINGPONG, /* ranks 0 and 1; the others do nothing */
  BENCH_BCAST,
  BENCH_REDUCE,
  BENCH_ALLREDUCE,
  BENCH_REDUCE_SCATTER,
  BENCH_SCAN,
  BENCH_EXSCAN,
  BENCH_GATHER,
  BENCH_SCATTER,
  BENCH_ALLGATHER,
  BENCH_ALLTOALL,
  BENCH_GATHERV,
  BENCH_SCATTERV,
  BENCH_ALLGATHERV,
  BENCH_REDUCE_SCATTERV,
  BENCH_ALLTOALLV,
  BENCH_BARRIER,
  BENCH_PUT,      /* every rank writes a block into the window of the next rank */
  BENCH_GET,      /* every rank reads a block from the window of the next rank */
  BENCH_INFLIGHT, /* so many all-reduces are started, and then all are waited for */
  BENCH_WAITED,   /* the same, but each is waited for before the next is started */
  BENCH_STREAM,   /* rank 0 sends so many blocks to rank 1, all started at once; rank 1 answers with one element */
  BENCH_OPS
};

enum bench_datatype { BENCH_INT32, BENCH_INT64, BENCH_FP32, BENCH_FP64, BENCH_DATATYPES };

/* Memory of buffers: of malloc; of malloc, then registered; of the system's own allocator. */
enum bench_kind { BENCH_MALLOC, BENCH_REGISTERED, BENCH_ALLOCATED, BENCH_KINDS };

/* All-reduces of BENCH_INFLIGHT and BENCH_WAITED, messages of BENCH_STREAM. */
enum { BENCH_FLIGHTS = 8 };

/* Counts of a v-collective that change from call to call are drawn beforehand, so many sets of them. */
enum { BENCH_SETS = 16 };

/* Numbers below this are exact, and so is their sum over as many ranks, in fp32. */
enum { BENCH_VALUES = 1 << 14, BENCH_MOST_RANKS = 1 << 10 };

/* A call that a block repeats, seen from one rank. */
struct bench_call {
  enum bench_op op;
  enum bench_datatype datatype;
  uint32_t rank, size;
  size_t count;          /* elements of a block; of v-collectives with changing counts, their mean */
  void *src, *dst;       /* null where the operation has none */
  uint32_t turns;        /* the call's turn runs from 0 to turns - 1, again and again */
  const char* algorithm; /* null: the system's own choice */
  uint32_t sets;         /* of counts: call n uses set n % sets; 1 unless they change */
  const size_t* counts;  /* of v-collectives, null otherwise; see bench_count */
};

/* -1 if there is no such name. */
int bench_op_of(const char* name);
int bench_datatype_of(const char* name);
int bench_kind_of(const char* name);
const char* bench_kind_name(enum bench_kind kind);
size_t bench_element_bytes(enum bench_datatype datatype);

/* Blocks of the source and of the destination; equal on all ranks, because roots change. */
size_t bench_src_blocks(enum bench_op op, uint32_t size);
size_t bench_dst_blocks(enum bench_op op, uint32_t size);
/* Turns: with a root, as many as ranks, and the turn is the root. For scans two: in turn 1 the order of the ranks
 * is reversed. Otherwise one. So no rank can run ahead of the others for long. */
uint32_t bench_turns(enum bench_op op, uint32_t size);
/* Whether a turn is a root. */
int bench_is_rooted(enum bench_op op);

/* Whether the destination (put) or the source (get) is a window, which other ranks reach. It has an element more than
 * the block. Its owner writes that in every call, so that the window's line travels, as in a program that uses it. */
int bench_has_window(enum bench_op op);
/* The rank whose window a rank reaches. */
static inline uint32_t bench_target(const struct bench_call* call) { return (call->rank + 1) % call->size; }

/* Whether every rank gives counts. */
int bench_has_counts(enum bench_op op);
/* Fills in `sets` and `counts` of a call whose other fields are there. Changing counts lie between 0 and twice the
 * mean; half of the sets are what the other half leaves of twice the mean, so that the mean over all sets is exact.
 * They depend on nothing but count and ranks: all systems get the same. Valid until the next call of this function. */
void bench_draw_counts(struct bench_call* call, int changing);
/* Elements that rank `from` has for rank `to` in a set. Where there is one list of counts, `from` is 0. */
static inline size_t bench_count(const struct bench_call* call, uint32_t set, uint32_t from, uint32_t to) {
  return call->counts[((size_t)set * call->size + from) * call->size + to];
}
/* Elements of the source and of the destination, at the most of all sets. */
size_t bench_src_elements(const struct bench_call* call);
size_t bench_dst_elements(const struct bench_call* call);

/* Makes memory ready for a block: this rank's data for the seed, and a destination that holds nothing right. Others
 * must not reach the window meanwhile. */
void bench_fill(const struct bench_call* call, uint32_t seed);
/* Stamps this rank's contribution to call number `number`, whose turn is `turn`. A get contributes nothing: its
 * destination's first element is made wrong instead. */
void bench_stamp(const struct bench_call* call, uint32_t turn, uint64_t number);
/* Whether memory holds what calls 0 to `last`, each stamped, leave behind. */
int bench_check(const struct bench_call* call, uint32_t seed, uint64_t last);
/* Damages one element of this rank's result, for the tests of bench_check. */
void bench_damage(const struct bench_call* call);

#endif
