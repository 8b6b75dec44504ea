/* Plain sockets, measured beside the systems: what TCP itself takes for a call, with as little around it as there can
 * be. The ranks wait as busily as the systems do: non-blocking calls, again and again.
 *
 *   ping-pong, stream   the bytes, and nothing else
 *   all-reduce          recursive doubling for short blocks of a power of two of ranks, otherwise a ring
 *   inflight            one all-reduce of all blocks at once, as somebody would who knows that there are eight */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../worker.h"
#include "mesh.h"

enum {
  DOUBLING_BYTES = 16 << 10, /* up to which every rank sends the whole block to log2 P others */
  PIECE = 128 << 10,         /* bytes that are received and then added, while they lie in the cache */
};

static struct mesh mesh;
static int shares_core; /* ranks share cores: who waits makes way */
static const char* algorithm;
static _Alignas(64) char scratch[PIECE];

static void rest(void) {
  if (shares_core) {
    sched_yield();
  } else {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

/* What is on its way in one direction. */
struct flow {
  int socket;
  char* at;
  size_t left;
};

/* Both move as much as the system takes or gives without waiting; whether that was anything. */
static int push(struct flow* flow) {
  if (flow->left == 0) return 0;
  const ssize_t sent = send(flow->socket, flow->at, flow->left, MSG_NOSIGNAL);
  if (sent < 0) {
    if (errno == EAGAIN || errno == EINTR) return 0;
    bench_fail("send: %s", strerror(errno));
  }
  flow->at += sent;
  flow->left -= (size_t)sent;
  return 1;
}

static int pull(struct flow* flow) {
  if (flow->left == 0) return 0;
  const ssize_t came = recv(flow->socket, flow->at, flow->left, 0);
  if (came < 0) {
    if (errno == EAGAIN || errno == EINTR) return 0;
    bench_fail("recv: %s", strerror(errno));
  }
  if (came == 0) bench_fail("a rank has closed its connection");
  flow->at += came;
  flow->left -= (size_t)came;
  return 1;
}

static struct flow flow_of(uint32_t rank, const void* at, size_t bytes) {
  return (struct flow){mesh.sockets[rank], (char*)at, bytes};
}

static void put_all(uint32_t to, const void* data, size_t bytes) {
  struct flow out = flow_of(to, data, bytes);
  while (out.left > 0) {
    if (!push(&out)) rest();
  }
}

static void get_all(uint32_t from, void* data, size_t bytes) {
  struct flow in = flow_of(from, data, bytes);
  while (in.left > 0) {
    if (!pull(&in)) rest();
  }
}

static void exchange(struct flow out, struct flow in) {
  while (out.left > 0 || in.left > 0) {
    const int moved = push(&out) | pull(&in);
    if (!moved) rest();
  }
}

/* into[i] = a[i] + b[i]; `into` may be either. */
static void add(enum bench_datatype datatype, const void* a, const void* b, void* into, size_t bytes) {
#define CASE(name, type)                                                                                            \
  case name:                                                                                                        \
    for (size_t i = 0; i < bytes / sizeof(type); ++i) ((type*)into)[i] = ((const type*)a)[i] + ((const type*)b)[i]; \
    break;
  switch (datatype) {
    CASE(BENCH_INT32, int32_t)
    CASE(BENCH_INT64, int64_t)
    CASE(BENCH_FP32, float)
    CASE(BENCH_FP64, double)
    default:
      break;
  }
#undef CASE
}

static void double_up(const struct bench_call* call, size_t bytes) {
  const void* own = call->src;
  for (uint32_t mask = 1; mask < mesh.size; mask <<= 1) {
    const uint32_t other = mesh.rank ^ mask;
    exchange(flow_of(other, own, bytes), flow_of(other, scratch, bytes));
    add(call->datatype, own, scratch, call->dst, bytes);
    own = call->dst;
  }
}

/* Receives `bytes` and adds them to `with`, piece by piece, while `out` leaves. */
static void exchange_and_add(enum bench_datatype datatype, struct flow out, uint32_t from, const char* with, char* into,
                             size_t bytes) {
  size_t begun = 0;
  struct flow in = {.left = 0};
  while (out.left > 0 || begun < bytes) {
    const size_t piece = bytes - begun < PIECE ? bytes - begun : PIECE;
    if (begun < bytes && in.at == NULL) in = flow_of(from, scratch, piece);
    const int moved = push(&out) | pull(&in);
    if (in.at != NULL && in.left == 0) {
      add(datatype, with + begun, scratch, into + begun, piece);
      begun += piece;
      in = (struct flow){.left = 0};
    }
    if (!moved) rest();
  }
}

/* Each rank's part goes round and is added to, and the sums go round. */
static void go_round(const struct bench_call* call, size_t count) {
  const uint32_t size = mesh.size, next = (mesh.rank + 1) % size, previous = (mesh.rank + size - 1) % size;
  const size_t element = bench_element_bytes(call->datatype);
  const char* const src = call->src;
  char* const dst = call->dst;
#define BEGIN(part) ((part)*count / size * element)
#define BYTES(part) (BEGIN((size_t)(part) + 1) - BEGIN((size_t)(part)))
  for (uint32_t step = 0; step + 1 < size; ++step) {
    const uint32_t leaves = (mesh.rank + size - step) % size, comes = (leaves + size - 1) % size;
    const char* const from = step == 0 ? src : dst;
    exchange_and_add(call->datatype, flow_of(next, from + BEGIN((size_t)leaves), BYTES(leaves)), previous,
                     src + BEGIN((size_t)comes), dst + BEGIN((size_t)comes), BYTES(comes));
  }
  for (uint32_t step = 0; step + 1 < size; ++step) {
    const uint32_t leaves = (mesh.rank + 1 + size - step) % size, comes = (leaves + size - 1) % size;
    exchange(flow_of(next, dst + BEGIN((size_t)leaves), BYTES(leaves)),
             flow_of(previous, dst + BEGIN((size_t)comes), BYTES(comes)));
  }
#undef BEGIN
#undef BYTES
}

static void allreduce(const struct bench_call* call, size_t blocks) {
  const size_t count = blocks * call->count, bytes = count * bench_element_bytes(call->datatype);
  if (bytes <= DOUBLING_BYTES && (mesh.size & (mesh.size - 1)) == 0) {
    algorithm = "recursive_doubling";
    double_up(call, bytes);
  } else {
    algorithm = "ring";
    go_round(call, count);
  }
}

/* There and back, or `blocks` there and one element back. */
static void to_and_fro(const struct bench_call* call, size_t blocks) {
  const size_t element = bench_element_bytes(call->datatype), there = blocks * call->count * element;
  const size_t back = call->op == BENCH_STREAM ? element : there;
  if (mesh.rank > 1) return;
  if (mesh.rank == 0) {
    put_all(1, call->src, there);
    get_all(1, call->dst, back);
  } else {
    get_all(0, call->dst, there);
    put_all(0, call->src, back);
  }
}

uint32_t system_launched_rank(void) {
  const char* const rank = getenv("UNISONO_RANK");
  if (rank == NULL) bench_fail("UNISONO_RANK is not set: what started this process?");
  return (uint32_t)strtoul(rank, NULL, 10);
}

void system_open(int* argc, char*** argv, uint32_t* rank, uint32_t* size) {
  for (int i = 1; i + 1 < *argc; ++i) {
    if (strcmp((*argv)[i], "--cores") == 0) shares_core = strcmp((*argv)[i + 1], "-") == 0;
  }
  mesh = mesh_open();
  *rank = mesh.rank;
  *size = mesh.size;
}

void system_close(void) { mesh_close(&mesh); }

int system_offers(enum bench_kind kind) {
  (void)kind; /* sockets take any memory */
  return 1;
}

void* system_allocate(size_t bytes, enum bench_kind kind) {
  (void)kind;
  return bench_allocate_plain(bytes);
}

void system_deallocate(void* memory, enum bench_kind kind) {
  (void)kind;
  free(memory);
}

void* system_expose(size_t bytes, enum bench_kind kind) {
  (void)bytes;
  (void)kind;
  bench_fail("raw sockets have no windows");
  return NULL;
}

void system_withdraw(void* memory, enum bench_kind kind) {
  (void)memory;
  (void)kind;
}

void system_prepare(const struct bench_call* call) {
  (void)call;
  algorithm = NULL;
}

void system_call(const struct bench_call* call, uint32_t turn, uint32_t set) {
  (void)turn;
  (void)set;
  switch (call->op) {
    case BENCH_PINGPONG:
      to_and_fro(call, 1);
      break;
    case BENCH_STREAM:
      to_and_fro(call, BENCH_FLIGHTS);
      break;
    case BENCH_ALLREDUCE:
      allreduce(call, 1);
      break;
    case BENCH_INFLIGHT:
      allreduce(call, BENCH_FLIGHTS);
      break;
    case BENCH_BARRIER:
      system_barrier();
      break;
    default:
      bench_fail("raw sockets are measured with ping-pong, stream, allreduce, inflight and barrier only");
  }
}

/* After log2 P steps everybody has heard, by others, of everybody. */
void system_barrier(void) {
  const char word = 1;
  char heard = 0;
  for (uint32_t distance = 1; distance < mesh.size; distance <<= 1) {
    exchange(flow_of((mesh.rank + distance) % mesh.size, &word, 1),
             flow_of((mesh.rank + mesh.size - distance) % mesh.size, &heard, 1));
  }
}

void system_settle(void) { system_barrier(); }

const char* system_algorithm(void) { return algorithm; }
