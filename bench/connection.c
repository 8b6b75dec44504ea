#define _GNU_SOURCE
#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int connection = -1;
static const char* system_name = "benchmark";

struct bench_options bench_options_of(int argc, char** argv) {
  struct bench_options options = {.cores = "-"};
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--damage") == 0) {
      options.damage = 1;
    } else if (i + 1 < argc && strcmp(argv[i], "--socket") == 0) {
      options.socket = argv[++i];
    } else if (i + 1 < argc && strcmp(argv[i], "--system") == 0) {
      options.system = argv[++i];
    } else if (i + 1 < argc && strcmp(argv[i], "--cores") == 0) {
      options.cores = argv[++i];
    } else if (i + 1 < argc && strcmp(argv[i], "--ranks") == 0) {
      options.ranks = (uint32_t)strtoul(argv[++i], NULL, 10);
    }
  }
  if (options.socket == NULL || options.system == NULL || options.ranks == 0) {
    bench_fail("%s is started by `unisono bench`, with --socket PATH --system NAME --ranks P", argv[0]);
  }
  system_name = options.system;
  return options;
}

void bench_die_with_parent(void) {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

void bench_pin(const struct bench_options* options, uint32_t rank) {
  if (strcmp(options->cores, "-") == 0) return;
  const char* at = options->cores;
  for (uint32_t i = 0; i < rank && at != NULL; ++i) {
    at = strchr(at, ',');
    if (at != NULL) ++at;
  }
  if (at == NULL) bench_fail("there is no core for rank %u among %s", rank, options->cores);
  cpu_set_t set;
  CPU_ZERO(&set);
  const int core = atoi(at);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    bench_fail("rank %u cannot be bound to core %d: %s", rank, core, strerror(errno));
  }
}

static void write_all(const char* text, size_t length) {
  while (length > 0) {
    const ssize_t written = send(connection, text, length, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1); /* nobody listens any more */
    text += written;
    length -= (size_t)written;
  }
}

void bench_connect(const struct bench_options* options, uint32_t rank, uint32_t size) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(options->socket) >= sizeof address.sun_path) bench_fail("the socket's path is too long");
  strcpy(address.sun_path, options->socket);
  connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0 || connect(connection, (struct sockaddr*)&address, sizeof address) != 0) {
    connection = -1;
    bench_fail("cannot connect to %s: %s", options->socket, strerror(errno));
  }
  bench_reply("hello %s %u %u %d", options->system, rank, size, (int)getpid());
}

char* bench_read_line(void) {
  static char line[512];
  size_t length = 0;
  for (;;) {
    const ssize_t came = read(connection, line + length, sizeof line - 1 - length);
    if (came < 0 && errno == EINTR) continue;
    if (came <= 0) return NULL;
    length += (size_t)came;
    /* The command waits for the answer before it says the next line. */
    if (line[length - 1] == '\n') {
      line[length - 1] = '\0';
      return line;
    }
    if (length == sizeof line - 1) bench_fail("a command is longer than %zu bytes", sizeof line);
  }
}

static void say(const char* prefix, const char* format, va_list arguments) {
  char line[1024];
  const int begin = snprintf(line, sizeof line, "%s", prefix);
  int length = begin + vsnprintf(line + begin, sizeof line - 1 - (size_t)begin, format, arguments);
  if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
  for (int i = 0; i < length; ++i) {
    if (line[i] == '\n') line[i] = ' ';
  }
  line[length++] = '\n';
  if (connection >= 0) {
    write_all(line, (size_t)length);
  } else {
    fprintf(stderr, "%s: %.*s", system_name, length, line);
  }
}

void bench_reply(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say("", format, arguments);
  va_end(arguments);
}

void bench_fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say("failed ", format, arguments);
  va_end(arguments);
  _exit(1);
}

void* bench_allocate_plain(size_t bytes) {
  /* A line's alignment, as careful applications have; a line more than asked for, since size 0 must do. */
  void* const memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (memory == NULL) bench_fail("there is no memory for %zu bytes", bytes);
  return memory;
}

struct bench_block bench_block_of(const char* line) {
  struct bench_block block;
  unsigned long count, warmup, calls, batch, seed;
  if (sscanf(line, "block %31s %15s %lu %15s %15s %63s %lu %lu %lu %lu", block.op, block.datatype, &count,
             block.buffers, block.counts, block.algorithm, &warmup, &calls, &batch, &seed) != 10 ||
      calls == 0) {
    bench_fail("this command is not understood: %s", line);
  }
  block.count = count;
  block.warmup = warmup;
  block.calls = calls;
  block.batch = batch;
  block.seed = (uint32_t)seed;
  return block;
}

double bench_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds in which this thread was ready to run but waited for a core; 0 where the kernel does not say. */
static double waited_for_core(void) {
  static int file = -2;
  if (file == -2) file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  char text[128];
  const ssize_t length = file < 0 ? -1 : pread(file, text, sizeof text - 1, 0);
  unsigned long long ran = 0, waited = 0;
  if (length <= 0) return 0;
  text[length] = '\0';
  return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? 1e-9 * (double)waited : 0;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

struct bench_times bench_time(const struct bench_block* block, bench_calls calls, const void* what, uint64_t first) {
  struct bench_times times = {0, 0, 0, 0};
  if (block->batch == 0) {
    const double waited = waited_for_core();
    const double begin = bench_now();
    calls(what, first, block->calls);
    times.seconds = bench_now() - begin;
    times.stolen = waited_for_core() - waited;
    return times;
  }
  const uint64_t batches = block->calls / block->batch;
  if (batches == 0)
    bench_fail("%lu calls are not a batch of %lu", (unsigned long)block->calls, (unsigned long)block->batch);
  double* const samples = bench_allocate_plain(batches * sizeof *samples);
  memset(samples, 0, batches * sizeof *samples); /* the pages must be there before the clock runs */
  const double begin = bench_now();
  double before = begin;
  for (uint64_t i = 0; i < batches; ++i) {
    calls(what, first + i * block->batch, block->batch);
    const double now = bench_now();
    samples[i] = (now - before) / (double)block->batch;
    before = now;
  }
  times.seconds = before - begin;
  /* The rest, for all ranks make equally many calls. */
  calls(what, first + batches * block->batch, block->calls % block->batch);
  qsort(samples, batches, sizeof *samples, compare);
  times.median = samples[batches / 2];
  times.p99 = samples[(batches * 99 + 99) / 100 - 1];
  free(samples);
  return times;
}
