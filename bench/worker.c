/* The benchmark's loop: one process of one system. */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct bench_options options;

/* Buffers of the last call, kept while they fit: a round comes back to the same call again and again. */
struct buffer {
  void* memory;
  size_t bytes;
  enum bench_kind kind;
  int exposed; /* it is a window */
};
static struct buffer src, dst;

static void release(struct buffer* buffer) {
  if (buffer->memory == NULL) return;
  if (buffer->exposed) {
    system_withdraw(buffer->memory, buffer->kind);
  } else {
    system_deallocate(buffer->memory, buffer->kind);
  }
  buffer->memory = NULL;
}

static int fits(const struct buffer* buffer, struct buffer wanted) {
  return buffer->memory != NULL && buffer->bytes == wanted.bytes && buffer->kind == wanted.kind &&
         buffer->exposed == wanted.exposed;
}

static void acquire(struct buffer* buffer, struct buffer wanted) {
  if (buffer->memory != NULL || wanted.bytes == 0) return;
  *buffer = wanted;
  buffer->memory =
      wanted.exposed ? system_expose(wanted.bytes, wanted.kind) : system_allocate(wanted.bytes, wanted.kind);
}

static void bind_memory(struct bench_call* call, enum bench_kind kind) {
  const size_t element = bench_element_bytes(call->datatype);
  const struct buffer source = {NULL, element * bench_src_elements(call), kind, call->op == BENCH_GET};
  const struct buffer destination = {NULL, element * bench_dst_elements(call), kind, call->op == BENCH_PUT};
  /* Both are released first: there is one window at a time. */
  if (!fits(&src, source)) release(&src);
  if (!fits(&dst, destination)) release(&dst);
  acquire(&src, source);
  acquire(&dst, destination);
  call->src = src.memory;
  call->dst = dst.memory;
}

static void make_calls(const void* what, uint64_t first, uint64_t calls) {
  const struct bench_call* const call = what;
  uint32_t turn = (uint32_t)(first % call->turns), set = (uint32_t)(first % call->sets);
  for (uint64_t i = first; i < first + calls; ++i) {
    bench_stamp(call, turn, i);
    system_call(call, turn, set);
    if (++turn == call->turns) turn = 0;
    if (++set == call->sets) set = 0;
  }
}

/* A few calls with data of their own, so that every rank is the root of one; whether their results are right. */
static int verify(const struct bench_call* call, uint32_t seed) {
  bench_fill(call, seed);
  if (bench_has_window(call->op)) system_barrier(); /* nobody reaches a window that is being filled */
  make_calls(call, 0, call->turns);
  if (bench_has_window(call->op)) system_settle();
  if (options.damage && call->rank == 0) bench_damage(call);
  return bench_check(call, seed, call->turns - 1);
}

static void measure(const char* line, uint32_t rank, uint32_t size) {
  static struct bench_block block; /* its texts must live as long as the call */
  block = bench_block_of(line);
  const int op = bench_op_of(block.op), datatype = bench_datatype_of(block.datatype);
  const int kind = bench_kind_of(block.buffers);
  if (op < 0 || datatype < 0) bench_fail("there is no operation %s of %s here", block.op, block.datatype);
  if (kind < 0) bench_fail("there are no buffers of the kind %s here", block.buffers);
  if (!system_offers((enum bench_kind)kind)) bench_fail("%s has no %s buffers", options.system, block.buffers);
  struct bench_call call = {
      .op = (enum bench_op)op,
      .datatype = (enum bench_datatype)datatype,
      .rank = rank,
      .size = size,
      .count = block.count,
      .turns = bench_turns((enum bench_op)op, size),
      .algorithm = strcmp(block.algorithm, "-") == 0 ? NULL : block.algorithm,
  };
  bench_draw_counts(&call, strcmp(block.counts, "changing") == 0);
  bind_memory(&call, (enum bench_kind)kind);
  system_prepare(&call);

  int right = verify(&call, 2 * block.seed);
  bench_fill(&call, 2 * block.seed + 1);
  /* The ranks were woken one after the other, and filling takes each as long as it takes. */
  system_barrier();
  system_barrier();
  make_calls(&call, 0, block.warmup);
  const struct bench_times times = bench_time(&block, make_calls, &call, block.warmup);
  if (bench_has_window(call.op)) system_settle();
  right &= bench_check(&call, 2 * block.seed + 1, block.warmup + block.calls - 1);
  const char* const algorithm = system_algorithm();
  right &= verify(&call, 2 * block.seed + 2);
  bench_reply("done %.9f %.9f %.12f %.12f %d %s", times.seconds, times.stolen, times.median, times.p99, right,
              algorithm == NULL ? "-" : algorithm);
}

/* Names the kinds of buffers that the system can be measured with. */
static int list_kinds(void) {
  for (int kind = 0; kind < BENCH_KINDS; ++kind) {
    if (system_offers((enum bench_kind)kind)) printf("%s\n", bench_kind_name((enum bench_kind)kind));
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--buffers") == 0) return list_kinds();
  bench_die_with_parent();
  options = bench_options_of(argc, argv);
  bench_pin(&options, system_launched_rank());
  uint32_t rank = 0, size = 0;
  system_open(&argc, &argv, &rank, &size);
  bench_connect(&options, rank, size);
  if (size != options.ranks) bench_fail("the job has %u ranks instead of %u", size, options.ranks);
  if (size > BENCH_MOST_RANKS) bench_fail("%u ranks; results can be checked of %d at most", size, BENCH_MOST_RANKS);
  for (;;) {
    const char* const line = bench_read_line();
    /* Without the command there is no orderly end, for the other ranks may be in the middle of a call. */
    if (line == NULL) _exit(1);
    if (strcmp(line, "end") == 0) break;
    measure(line, rank, size);
  }
  release(&src);
  release(&dst);
  system_close();
  return 0;
}
