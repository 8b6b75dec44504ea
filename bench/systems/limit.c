/* What the machine itself can do: the row that every other row is compared with.
 *
 * Processes bound as the ranks are, as many as there are cores for them, with no communication system at all:
 *
 *   cache_line       half a round trip over two lines, each written by one process: a word there, a word back
 *   memcpy, reduce   one core copies; one core computes c = a + b
 *   share of a call  every core does its part of the copying and adding that the operation consists of, with the
 *                    data already there: no call can be faster, however it is done
 *   copy, cells      the same where ranks have memory of their own, as malloc gives it: what goes from one rank to
 *                    another goes by kernel copies, or through cells in shared memory (limit_ways.c)
 *
 * Commands are those of the other systems; ALGORITHM says which of these: line, core, share, copy, cells. Where the
 * kernel refuses copies the answer to copy is "refused". --refuse-copies makes it refuse them, for tests. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../connection.h"
#include "limit_ways.h"

static struct process* processes;
static struct bench_options options;
static uint32_t rank, size;

static void barrier(void) {
  static uint64_t passed;
  ++passed;
  atomic_store_explicit(&processes[rank].barrier.value, passed, memory_order_release);
  for (uint32_t i = 0; i < size; ++i) await(&processes[i].barrier.value, passed);
}

static void do_work(const void* what, uint64_t first, uint64_t calls) {
  struct work* const work = *(struct work* const*)what;
  for (uint64_t i = first; i < first + calls; ++i) work_call(work);
}

static uint64_t sent; /* words over the line so far; never goes back, as sequence flags do not */

static void ping(const void* what, uint64_t first, uint64_t calls) {
  (void)what;
  (void)first;
  if (rank > 1) return;
  _Atomic uint64_t* const mine = &processes[rank].line.value;
  _Atomic uint64_t* const theirs = &processes[1 - rank].line.value;
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

/* Whether a process may not reach another's memory. */
static int copies_are_refused(struct work* work) {
  processes[rank].refused = 0;
  barrier(); /* the trial writes what it has read there */
  const int failed = work_try_copy(work);
  barrier();
  processes[rank].refused = failed;
  barrier();
  int refused = 0;
  for (uint32_t i = 0; i < size; ++i) refused |= processes[i].refused;
  return refused;
}

static int way_of(const char* name) {
  static const char* const names[] = {"core", "share", "copy", "cells"};
  for (int i = 0; i < 4; ++i) {
    if (strcmp(name, names[i]) == 0) return i;
  }
  bench_fail("there is no limit %s; there are line, core, share, copy and cells", name);
}

/* The part of a process in a block. */
static struct work part_of(const struct bench_block* block, enum bench_datatype datatype) {
  struct work work = {.way = (enum way)way_of(block->algorithm), .datatype = datatype, .slice = block->count};
  work.rank = rank;
  work.size = size;
  work.processes = processes;
  if (work.way == WAY_CORE) {
    const int adds = strcmp(block->op, "reduce") == 0;
    if (rank == 0) work.demand = (struct demand){.copies = adds ? 0 : 1, .sums = adds ? 1 : 0};
  } else {
    const int op = bench_op_of(block->op);
    if (op < 0) bench_fail("there is no operation %s here", block->op);
    work.demand = demand_of((enum bench_op)op, options.ranks);
    work.slice = (block->count + size - 1) / size;
  }
  return work;
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
  if (datatype < 0) bench_fail("there is no datatype %s here", block.datatype);

  if (!over_line && strcmp(wanted, key) != 0) {
    work_free(&work);
    strcpy(key, wanted);
    work = part_of(&block, (enum bench_datatype)datatype);
    work_prepare(&work);
  }
  barrier();
  if (!over_line && work.way == WAY_COPY && copies_are_refused(&work)) {
    bench_reply("done 1 0 0 0 1 refused");
    return;
  }

  const bench_calls calls = over_line ? ping : do_work;
  const struct work* const what = &work;
  calls(&what, 0, block.warmup);
  barrier();
  const struct bench_times times = bench_time(&block, calls, &what, block.warmup);
  barrier(); /* others write into this process's memory */
  if (options.damage && !over_line) memset(work.c, 0xFF, work.bytes);
  const int right = over_line || work_is_right(&work);
  bench_reply("done %.9f %.9f %.12f %.12f %d -", times.seconds, times.stolen, times.median, times.p99, right);
}

/* From here on the kernel refuses what copies between processes, as it does in many containers. */
static void refuse_copies(void) {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof program / sizeof *program, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    bench_fail("kernel copies cannot be refused: %s", strerror(errno));
  }
}

int main(int argc, char** argv) {
  bench_die_with_parent();
  options = bench_options_of(argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--refuse-copies") == 0) refuse_copies();
  }
  /* One process for each core that is listed; all of them on as many cores as there may be otherwise. */
  size = 1;
  for (const char* at = options.cores; *at != '\0'; ++at) size += *at == ',';
  processes = mmap(NULL, size * sizeof *processes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (processes == MAP_FAILED) bench_fail("there is no memory to share");
  for (uint32_t i = 1; i < size; ++i) {
    const pid_t child = fork();
    if (child < 0) bench_fail("process %u cannot be made", i);
    if (child == 0) {
      bench_die_with_parent();
      rank = i;
      break;
    }
  }
  processes[rank].pid = getpid();
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* siblings may reach each other's memory */
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
