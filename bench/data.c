#include "data.h"

#include <stdlib.h>
#include <string.h>

#include "connection.h"

static const char* const kOps[BENCH_OPS] = {
    "pingpong", "bcast",     "reduce",   "allreduce", "reduce_scatter", "scan",       "exscan",          "gather",
    "scatter",  "allgather", "alltoall", "gatherv",   "scatterv",       "allgatherv", "reduce_scatterv", "alltoallv",
    "barrier",  "put",       "get",      "inflight",  "waited",         "stream"};
static const char* const kDatatypes[BENCH_DATATYPES] = {"int32", "int64", "fp32", "fp64"};
static const char* const kKinds[BENCH_KINDS] = {"malloc", "registered", "allocated"};

static int find(const char* name, const char* const* names, int count) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(name, names[i]) == 0) return i;
  }
  return -1;
}

int bench_op_of(const char* name) { return find(name, kOps, BENCH_OPS); }
int bench_datatype_of(const char* name) { return find(name, kDatatypes, BENCH_DATATYPES); }
int bench_kind_of(const char* name) { return find(name, kKinds, BENCH_KINDS); }
const char* bench_kind_name(enum bench_kind kind) { return kKinds[kind]; }

size_t bench_element_bytes(enum bench_datatype datatype) {
  return datatype == BENCH_INT32 || datatype == BENCH_FP32 ? 4 : 8;
}

/* v-collectives have the shape of what they generalise. */
static enum bench_op shape_of(enum bench_op op) {
  switch (op) {
    case BENCH_GATHERV:
      return BENCH_GATHER;
    case BENCH_SCATTERV:
      return BENCH_SCATTER;
    case BENCH_ALLGATHERV:
      return BENCH_ALLGATHER;
    case BENCH_REDUCE_SCATTERV:
      return BENCH_REDUCE_SCATTER;
    case BENCH_ALLTOALLV:
      return BENCH_ALLTOALL;
    default:
      return op;
  }
}

int bench_has_window(enum bench_op op) { return op == BENCH_PUT || op == BENCH_GET; }

size_t bench_src_blocks(enum bench_op op, uint32_t size) {
  switch (shape_of(op)) {
    case BENCH_INFLIGHT:
    case BENCH_WAITED:
    case BENCH_STREAM:
      return BENCH_FLIGHTS;
    case BENCH_BCAST:
    case BENCH_BARRIER:
      return 0;
    case BENCH_REDUCE_SCATTER:
    case BENCH_SCATTER:
    case BENCH_ALLTOALL:
      return size;
    default:
      return 1;
  }
}

size_t bench_dst_blocks(enum bench_op op, uint32_t size) {
  switch (shape_of(op)) {
    case BENCH_INFLIGHT:
    case BENCH_WAITED:
    case BENCH_STREAM:
      return BENCH_FLIGHTS;
    case BENCH_BARRIER:
      return 0;
    case BENCH_GATHER:
    case BENCH_ALLGATHER:
    case BENCH_ALLTOALL:
      return size;
    default:
      return 1;
  }
}

int bench_is_rooted(enum bench_op op) {
  switch (shape_of(op)) {
    case BENCH_BCAST:
    case BENCH_REDUCE:
    case BENCH_GATHER:
    case BENCH_SCATTER:
      return 1;
    default:
      return 0;
  }
}

uint32_t bench_turns(enum bench_op op, uint32_t size) {
  if (bench_is_rooted(op)) return size;
  return op == BENCH_SCAN || op == BENCH_EXSCAN ? 2 : 1;
}

int bench_has_counts(enum bench_op op) { return shape_of(op) != op; }

/* A number that depends on nothing but its arguments (SplitMix64). */
static uint64_t drawn(uint64_t set, uint64_t from, uint64_t to) {
  uint64_t mixed = ((set << 32) + (from << 16) + to + 1) * 0x9E3779B97F4A7C15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
  return mixed ^ (mixed >> 31);
}

void bench_draw_counts(struct bench_call* call, int changing) {
  static size_t* table;
  call->sets = 1;
  call->counts = NULL;
  if (!bench_has_counts(call->op)) return;
  if (changing) call->sets = BENCH_SETS;
  free(table);
  table = calloc((size_t)call->sets * call->size * call->size, sizeof *table);
  if (table == NULL) bench_fail("there is no memory for the counts of %u ranks", call->size);
  size_t* at = table;
  for (uint32_t set = 0; set < call->sets; ++set) {
    const uint32_t pair = set < BENCH_SETS / 2 ? set : BENCH_SETS - 1 - set;
    for (uint32_t from = 0; from < call->size; ++from) {
      for (uint32_t to = 0; to < call->size; ++to, ++at) {
        const size_t count = drawn(pair, from, to) % (2 * call->count + 1);
        *at = !changing ? call->count : pair == set ? count : 2 * call->count - count;
      }
    }
  }
  call->counts = table;
}

static size_t most(const struct bench_call* call, size_t blocks) {
  return blocks * call->count * (call->sets > 1 ? 2 : 1);
}

size_t bench_src_elements(const struct bench_call* call) {
  return most(call, bench_src_blocks(call->op, call->size)) + (call->op == BENCH_GET);
}
size_t bench_dst_elements(const struct bench_call* call) {
  return most(call, bench_dst_blocks(call->op, call->size)) + (call->op == BENCH_PUT);
}

/* Element `index` of block `block` of what `rank` contributes. */
static inline uint32_t value_of(uint32_t rank, uint32_t block, uint64_t index, uint32_t seed) {
  const uint32_t start = (rank + 1) * 0x9E3779B1u + (block + 1) * 0x85EBCA6Bu + seed * 0xC2B2AE35u;
  const uint32_t mixed = (start ^ (start >> 15)) + (uint32_t)index * 0x2C1B3C6Du;
  return mixed >> 18;
}

/* Element 0 of block 0 in call `number`. */
static inline uint32_t stamp_of(uint32_t rank, uint64_t number) {
  return ((uint32_t)number * 0x9E3779B1u + (rank + 1) * 0x85EBCA6Bu) >> 18;
}

/* The loops below are written for each datatype, so that the compiler can make vectors of them. */
#define FOR_EACH_DATATYPE(action) \
  action(BENCH_INT32, int32_t) action(BENCH_INT64, int64_t) action(BENCH_FP32, float) action(BENCH_FP64, double)

static void store(enum bench_datatype datatype, void* at, uint32_t number) {
#define CASE(name, type)              \
  case name: {                        \
    const type value = (type)number;  \
    memcpy(at, &value, sizeof value); \
    break;                            \
  }
  switch (datatype) {
    FOR_EACH_DATATYPE(CASE)
    default:
      break;
  }
#undef CASE
}

static void fill_block(const struct bench_call* call, void* block, size_t count, uint32_t number, uint32_t seed) {
#define CASE(name, type)                                                                     \
  case name: {                                                                               \
    type* const out = block;                                                                 \
    for (size_t i = 0; i < count; ++i) out[i] = (type)value_of(call->rank, number, i, seed); \
    break;                                                                                   \
  }
  switch (call->datatype) {
    FOR_EACH_DATATYPE(CASE)
    default:
      break;
  }
#undef CASE
}

void bench_fill(const struct bench_call* call, uint32_t seed) {
  const size_t element = bench_element_bytes(call->datatype);
  const size_t dst_elements = bench_dst_elements(call);
  if (dst_elements != 0) memset(call->dst, 0xA5, dst_elements * element);
  if (call->sets > 1) {
    /* Blocks begin elsewhere in every call, so the source is one. */
    fill_block(call, call->src, bench_src_elements(call), 0, seed);
    return;
  }
  for (uint32_t i = 0; i < bench_src_blocks(call->op, call->size); ++i) {
    fill_block(call, (char*)call->src + i * call->count * element, call->count, i, seed);
  }
  if (call->op == BENCH_BCAST && call->rank == 0) fill_block(call, call->dst, call->count, 0, seed);
  /* What others read at any moment has the stamp of call 0. */
  if (call->op == BENCH_GET) store(call->datatype, call->src, stamp_of(call->rank, 0));
}

void bench_stamp(const struct bench_call* call, uint32_t turn, uint64_t number) {
  void* at = call->src;
  if (call->op == BENCH_BCAST && turn == call->rank) at = call->dst;
  if (bench_has_window(call->op)) {
    char* const window = call->op == BENCH_PUT ? call->dst : call->src;
    store(call->datatype, window + call->count * bench_element_bytes(call->datatype), (uint32_t)number & 1);
    /* No value is as large. */
    if (call->op == BENCH_GET) return store(call->datatype, call->dst, BENCH_VALUES);
  }
  if (at != NULL) store(call->datatype, at, stamp_of(call->rank, number));
}

/* Whether `count` elements are the sum, over ranks first to last, of those from `begin` on of block `source` of what
 * they contribute to call `number`. */
static int check_piece(const struct bench_call* call, const void* piece, size_t count, uint32_t first, uint32_t last,
                       uint32_t source, uint64_t begin, uint32_t seed, uint64_t number) {
  if (count == 0) return 1;
  uint32_t head = 0;
  for (uint32_t rank = first; rank <= last; ++rank) {
    head += source == 0 && begin == 0 ? stamp_of(rank, number) : value_of(rank, source, begin, seed);
  }
  int wrong = 0;
#define CASE(name, type)                                                                                \
  case name: {                                                                                          \
    const type* const in = piece;                                                                       \
    wrong |= in[0] != (type)head;                                                                       \
    for (size_t i = 1; i < count; ++i) {                                                                \
      uint32_t sum = 0;                                                                                 \
      for (uint32_t rank = first; rank <= last; ++rank) sum += value_of(rank, source, begin + i, seed); \
      wrong |= in[i] != (type)sum;                                                                      \
    }                                                                                                   \
    break;                                                                                              \
  }
  switch (call->datatype) {
    FOR_EACH_DATATYPE(CASE)
    default:
      break;
  }
#undef CASE
  return !wrong;
}

static int check_block(const struct bench_call* call, const void* block, uint32_t first, uint32_t last, uint32_t source,
                       uint32_t seed, uint64_t number) {
  return check_piece(call, block, call->count, first, last, source, 0, seed, number);
}

/* Elements of the blocks before `to` in the list of counts of `from`. */
static size_t offset_of(const struct bench_call* call, uint32_t set, uint32_t from, uint32_t to) {
  size_t offset = 0;
  for (uint32_t i = 0; i < to; ++i) offset += bench_count(call, set, from, i);
  return offset;
}

/* The same for counts that change: blocks are packed one behind the other. */
static int check_changing(const struct bench_call* call, uint32_t seed, uint64_t last) {
  const uint32_t rank = call->rank, size = call->size;
  const size_t element = bench_element_bytes(call->datatype);
  /* The last call of which this rank was the root. */
  const uint64_t back = call->op == BENCH_GATHERV ? (last + size - rank) % size : 0;
  if (back > last) return 1;
  const uint64_t number = last - back;
  const uint32_t set = (uint32_t)(number % call->sets), root = (uint32_t)(number % size);
  const size_t own = bench_count(call, set, 0, rank);
  if (call->op == BENCH_SCATTERV) {
    return check_piece(call, call->dst, own, root, root, 0, offset_of(call, set, 0, rank), seed, number);
  }
  if (call->op == BENCH_REDUCE_SCATTERV) {
    return check_piece(call, call->dst, own, 0, size - 1, 0, offset_of(call, set, 0, rank), seed, number);
  }
  const int all_to_all = call->op == BENCH_ALLTOALLV;
  const char* at = call->dst;
  for (uint32_t i = 0; i < size; ++i) {
    const size_t count = all_to_all ? bench_count(call, set, i, rank) : bench_count(call, set, 0, i);
    const size_t begin = all_to_all ? offset_of(call, set, i, rank) : 0;
    if (!check_piece(call, at, count, i, i, 0, begin, seed, number)) return 0;
    at += count * element;
  }
  return 1;
}

/* A broadcast's data comes from rank 0, the root of call 0, and goes on from root to root; only the stamp changes. */
static int check_bcast(const struct bench_call* call, uint32_t seed, uint64_t last) {
  struct bench_call rest = *call;
  const size_t element = bench_element_bytes(call->datatype);
  char stamp[8] = {0};
  store(call->datatype, stamp, stamp_of((uint32_t)(last % call->turns), last));
  if (memcmp(call->dst, stamp, element) != 0) return 0;
  char first[8];
  memcpy(first, call->dst, element);
  store(call->datatype, call->dst, stamp_of(0, 0));
  const int right = check_block(&rest, call->dst, 0, 0, 0, seed, 0);
  memcpy(call->dst, first, element);
  return right;
}

int bench_check(const struct bench_call* call, uint32_t seed, uint64_t last) {
  const uint32_t rank = call->rank, size = call->size;
  const size_t block = call->count * bench_element_bytes(call->datatype);
  if (call->count == 0) return 1;
  if (call->sets > 1) return check_changing(call, seed, last);
  switch (shape_of(call->op)) {
    case BENCH_PINGPONG:
      return rank > 1 || check_block(call, call->dst, 1 - rank, 1 - rank, 0, seed, last);
    case BENCH_STREAM:
      if (rank == 0) return check_piece(call, call->dst, 1, 1, 1, 0, 0, seed, last); /* the answer */
      for (uint32_t i = 0; rank == 1 && i < BENCH_FLIGHTS; ++i) {
        if (!check_block(call, (const char*)call->dst + i * block, 0, 0, i, seed, last)) return 0;
      }
      return 1;
    case BENCH_BCAST:
      return check_bcast(call, seed, last);
    case BENCH_REDUCE:
    case BENCH_GATHER: {
      /* The last call of which this rank was the root. */
      const uint64_t back = (last + size - rank) % size;
      if (back > last) return 1;
      if (shape_of(call->op) == BENCH_REDUCE) return check_block(call, call->dst, 0, size - 1, 0, seed, last - back);
      for (uint32_t i = 0; i < size; ++i) {
        if (!check_block(call, (const char*)call->dst + i * block, i, i, 0, seed, last - back)) return 0;
      }
      return 1;
    }
    case BENCH_PUT: {
      const uint32_t source = (rank + size - 1) % size;
      return check_block(call, call->dst, source, source, 0, seed, last);
    }
    case BENCH_GET:
      return check_block(call, call->dst, bench_target(call), bench_target(call), 0, seed, 0);
    case BENCH_INFLIGHT:
    case BENCH_WAITED:
      for (uint32_t i = 0; i < BENCH_FLIGHTS; ++i) {
        if (!check_block(call, (const char*)call->dst + i * block, 0, size - 1, i, seed, last)) return 0;
      }
      return 1;
    case BENCH_ALLREDUCE:
      return check_block(call, call->dst, 0, size - 1, 0, seed, last);
    case BENCH_REDUCE_SCATTER:
      return check_block(call, call->dst, 0, size - 1, rank, seed, last);
    case BENCH_SCAN:
      return last % 2 == 0 ? check_block(call, call->dst, 0, rank, 0, seed, last)
                           : check_block(call, call->dst, rank, size - 1, 0, seed, last);
    case BENCH_EXSCAN: /* the first rank's result is undefined */
      if (last % 2 == 0) return rank == 0 || check_block(call, call->dst, 0, rank - 1, 0, seed, last);
      return rank == size - 1 || check_block(call, call->dst, rank + 1, size - 1, 0, seed, last);
    case BENCH_SCATTER: {
      const uint32_t root = (uint32_t)(last % size);
      return check_block(call, call->dst, root, root, rank, seed, last);
    }
    case BENCH_ALLGATHER:
      for (uint32_t i = 0; i < size; ++i) {
        if (!check_block(call, (const char*)call->dst + i * block, i, i, 0, seed, last)) return 0;
      }
      return 1;
    case BENCH_ALLTOALL:
      for (uint32_t i = 0; i < size; ++i) {
        if (!check_block(call, (const char*)call->dst + i * block, i, i, rank, seed, last)) return 0;
      }
      return 1;
    default:
      return 1;
  }
}

void bench_damage(const struct bench_call* call) {
  if (call->dst != NULL) *(unsigned char*)call->dst ^= 1;
}
