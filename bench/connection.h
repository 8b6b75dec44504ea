/* A benchmark process and the command that controls it (python/unisono/bench/).
 *
 * The process connects to the command's socket, says who it is, and then answers one line with one line. Between
 * them it sleeps in read(), so that systems which are not being measured use no core. */
#ifndef UNISONO_BENCH_CONNECTION_H
#define UNISONO_BENCH_CONNECTION_H

#include <stddef.h>
#include <stdint.h>

/* What the command line says. */
struct bench_options {
  const char* socket; /* path of the command's socket */
  const char* system; /* name under which this process reports */
  const char* cores;  /* cores, separated by commas: rank i runs on the i-th; "-": wherever there is room */
  uint32_t ranks;     /* of the job */
  int damage;         /* spoil a result before it is checked, to see that the check finds it */
};

struct bench_options bench_options_of(int argc, char** argv);
/* Ends this process when the one that started it ends, even when that is killed. */
void bench_die_with_parent(void);
void bench_pin(const struct bench_options* options, uint32_t rank);
void bench_connect(const struct bench_options* options, uint32_t rank, uint32_t size);
/* The next line, without its end; null when there is nobody to say one any more. */
char* bench_read_line(void);
void bench_reply(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Says what went wrong and ends the process. */
void bench_fail(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Memory as applications have it: of malloc, aligned to a line. Fails if there is none. */
void* bench_allocate_plain(size_t bytes);

/* One command to measure:  block OP DATATYPE COUNT BUFFERS COUNTS ALGORITHM WARMUP CALLS BATCH SEED
 * BUFFERS is malloc, registered or allocated; COUNTS, of v-collectives, equal or changing. */
struct bench_block {
  char op[32], datatype[16], buffers[16], counts[16], algorithm[64];
  uint64_t count, warmup, calls;
  uint64_t batch; /* calls between two looks at the clock; 0: only the whole is timed */
  uint32_t seed;
};
/* Reads it, or fails. */
struct bench_block bench_block_of(const char* line);

/* Calls number `first` to `first + calls - 1`. */
typedef void (*bench_calls)(const void* what, uint64_t first, uint64_t calls);
struct bench_times {
  double seconds;     /* of all calls */
  double stolen;      /* of them, how long this thread could have run but others had its core */
  double median, p99; /* seconds for a call, over batches; 0 without batches */
};
/* Times `block->calls` calls, those from number `first` on. */
struct bench_times bench_time(const struct bench_block* block, bench_calls calls, const void* what, uint64_t first);
double bench_now(void);

#endif
