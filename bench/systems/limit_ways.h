/* The ways in which the processes of the limit move data (limit.c): what an operation demands of each, and a call. */
#ifndef UNISONO_BENCH_LIMIT_WAYS_H
#define UNISONO_BENCH_LIMIT_WAYS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../data.h"

enum way {
  WAY_CORE,  /* one process copies, or adds */
  WAY_SHARE, /* every process its part, with all data within its reach */
  WAY_COPY,  /* every process its part, with the data of a neighbour by process_vm_readv and process_vm_writev */
  WAY_CELLS  /* every process its part, with the data of a neighbour through cells in shared memory */
};

/* Blocks that a call copies and adds, over all ranks, at the least. */
struct demand {
  uint32_t copies, sums; /* WAY_SHARE: all memory is within reach */
  /* Otherwise: */
  uint32_t moved; /* blocks that go from one rank to another and stay as they are */
  uint32_t added; /* blocks that go from one rank to another and are added there */
  uint32_t own;   /* copies within a rank */
  uint32_t put;   /* blocks that are put into cells; several ranks may take the same */
  int one_way;    /* the ranks are sources, or they are destinations */
};
struct demand demand_of(enum bench_op op, uint32_t ranks);

enum { kLine = 128 }; /* two lines: the prefetcher fetches pairs */

/* Each word has one writer and never goes back. */
struct shared_word {
  _Alignas(kLine) _Atomic uint64_t value;
};
/* Waits in pauses; where somebody else has the core it is given away, so that no limit is needed for the wait. */
void await(_Atomic uint64_t* word, uint64_t least);

/* Together as large as a second-level cache: lines that come round again have left the other core's by then, and are
 * taken from the third level, which is faster. */
enum { kCells = 32, kCellBytes = 32 << 10 };

/* What the processes share. */
struct process {
  struct shared_word line, barrier, filled, drained; /* `drained` is written by the process that takes */
  int pid;
  int refused;     /* errno of a kernel copy that was tried; 0: there are kernel copies */
  char *from, *to; /* its memory, for kernel copies */
  _Alignas(kLine) char cells[kCells][kCellBytes];
};

/* A process's part of a call. Counts are elements. */
struct work {
  enum way way;
  enum bench_datatype datatype;
  struct demand demand;
  size_t slice; /* of a block */
  char *a, *b, *c;
  size_t bytes; /* of each */
  uint32_t rank, size;
  struct process* processes;
};

/* Makes the memory of a part; the same on all processes. */
void work_prepare(struct work* work);
void work_free(struct work* work);
void work_call(struct work* work);
/* Whether the memory holds what a call leaves there. All processes must have made it. */
int work_is_right(const struct work* work);
/* Tries a copy from and to the neighbour; 0, or the errno of why not. */
int work_try_copy(struct work* work);

#endif
