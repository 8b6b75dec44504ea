// The collectives of shmem.h: of teams, and of active sets.
#include "doors/shmem/access.hpp"
#include "doors/shmem/collectives.hpp"
#include "doors/shmem/interface.hpp"

using namespace unisono::shmem;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

namespace {

Team& team_at(const char* operation, shmem_team_t team) { return Job::of(operation).teams().get(operation, team); }

Team& set_at(const char* operation, int start, int log_stride, int size) {
  return Job::of(operation).teams().active_set(operation, start, log_stride, size);
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): names and types cannot stand in parentheses
extern "C" {

#define DEFINE_FOR(PREFIX, SUFFIX, TYPE, SIZE)                                                                       \
  int PREFIX##broadcast##SUFFIX(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count, int root) {         \
    UNISONO_SHMEM_NAMED(#PREFIX "broadcast" #SUFFIX);                                                                \
    return guarded([&] {                                                                                             \
      broadcast(kOperation, team_at(kOperation, team), dest, source, bytes_of(kOperation, count, SIZE), root, true); \
      return 0;                                                                                                      \
    });                                                                                                              \
  }                                                                                                                  \
  int PREFIX##collect##SUFFIX(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) {                     \
    UNISONO_SHMEM_NAMED(#PREFIX "collect" #SUFFIX);                                                                  \
    return guarded([&] {                                                                                             \
      collect(kOperation, team_at(kOperation, team), dest, source, bytes_of(kOperation, count, SIZE));               \
      return 0;                                                                                                      \
    });                                                                                                              \
  }                                                                                                                  \
  int PREFIX##fcollect##SUFFIX(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) {                    \
    UNISONO_SHMEM_NAMED(#PREFIX "fcollect" #SUFFIX);                                                                 \
    return guarded([&] {                                                                                             \
      fcollect(kOperation, team_at(kOperation, team), dest, source, bytes_of(kOperation, count, SIZE));              \
      return 0;                                                                                                      \
    });                                                                                                              \
  }                                                                                                                  \
  int PREFIX##alltoall##SUFFIX(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) {                    \
    UNISONO_SHMEM_NAMED(#PREFIX "alltoall" #SUFFIX);                                                                 \
    return guarded([&] {                                                                                             \
      alltoall(kOperation, team_at(kOperation, team), dest, source, bytes_of(kOperation, count, SIZE));              \
      return 0;                                                                                                      \
    });                                                                                                              \
  }                                                                                                                  \
  int PREFIX##alltoalls##SUFFIX(shmem_team_t team, TYPE* dest, const TYPE* source, ptrdiff_t dst_step,               \
                                ptrdiff_t src_step, size_t count) {                                                  \
    UNISONO_SHMEM_NAMED(#PREFIX "alltoalls" #SUFFIX);                                                                \
    return guarded([&] {                                                                                             \
      bytes_of(kOperation, count, SIZE);                                                                             \
      alltoalls(kOperation, team_at(kOperation, team), dest, source, dst_step, src_step, count, SIZE);               \
      return 0;                                                                                                      \
    });                                                                                                              \
  }
#define DEFINE(NAME, TYPE) DEFINE_FOR(shmem_##NAME##_, , TYPE, sizeof(TYPE))
UNISONO_SHMEM_RMA_TYPES(DEFINE)
#undef DEFINE
DEFINE_FOR(shmem_, mem, void, 1)
#undef DEFINE_FOR

#define REDUCE(NAME, TYPE, OP, CODE)                                                                  \
  int shmem_##NAME##_##OP##_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { \
    UNISONO_SHMEM_NAMED("shmem_" #NAME "_" #OP "_reduce");                                            \
    return guarded([&] {                                                                              \
      bytes_of(kOperation, count, sizeof(TYPE));                                                      \
      reduce(kOperation, team_at(kOperation, team), dest, source, count, CODE);                       \
      return 0;                                                                                       \
    });                                                                                               \
  }
#define BITS(NAME, TYPE)                       \
  REDUCE(NAME, TYPE, and, UNISONO_BITWISE_AND) \
  REDUCE(NAME, TYPE, or, UNISONO_BITWISE_OR)   \
  REDUCE(NAME, TYPE, xor, UNISONO_BITWISE_XOR)
#define ORDER(NAME, TYPE) REDUCE(NAME, TYPE, max, UNISONO_MAX) REDUCE(NAME, TYPE, min, UNISONO_MIN)
#define SUM(NAME, TYPE) REDUCE(NAME, TYPE, sum, UNISONO_SUM) REDUCE(NAME, TYPE, prod, UNISONO_PROD)
UNISONO_SHMEM_BIT_TYPES(BITS)
UNISONO_SHMEM_ORDER_TYPES(ORDER)
UNISONO_SHMEM_SUM_TYPES(SUM)
#undef REDUCE

// Of active sets: the same rows of other tables.
#define REDUCE(NAME, TYPE, OP, CODE)                                                                                \
  void shmem_##NAME##_##OP##_to_all(TYPE* dest, const TYPE* source, int count, int start, int log_stride, int size, \
                                    TYPE* /*work*/, long* /*sync*/) {                                               \
    UNISONO_SHMEM_NAMED("shmem_" #NAME "_" #OP "_to_all");                                                          \
    guarded([&] {                                                                                                   \
      const auto elements = static_cast<std::uint64_t>(count);                                                      \
      bytes_of(kOperation, elements, sizeof(TYPE));                                                                 \
      reduce(kOperation, set_at(kOperation, start, log_stride, size), dest, source, elements, CODE);                \
    });                                                                                                             \
  }
UNISONO_SHMEM_OLD_BIT_TYPES(BITS)
UNISONO_SHMEM_OLD_ORDER_TYPES(ORDER)
UNISONO_SHMEM_OLD_SUM_TYPES(SUM)
#undef REDUCE
#undef BITS
#undef ORDER
#undef SUM

#define DEFINE(BITS, BYTES)                                                                                        \
  void shmem_broadcast##BITS(void* dest, const void* source, size_t count, int root, int start, int log_stride,    \
                             int size, long* /*sync*/) {                                                           \
    UNISONO_SHMEM_NAMED("shmem_broadcast" #BITS);                                                                  \
    guarded([&] {                                                                                                  \
      broadcast(kOperation, set_at(kOperation, start, log_stride, size), dest, source,                             \
                bytes_of(kOperation, count, BYTES), root, false);                                                  \
    });                                                                                                            \
  }                                                                                                                \
  void shmem_collect##BITS(void* dest, const void* source, size_t count, int start, int log_stride, int size,      \
                           long* /*sync*/) {                                                                       \
    UNISONO_SHMEM_NAMED("shmem_collect" #BITS);                                                                    \
    guarded([&] {                                                                                                  \
      collect(kOperation, set_at(kOperation, start, log_stride, size), dest, source,                               \
              bytes_of(kOperation, count, BYTES));                                                                 \
    });                                                                                                            \
  }                                                                                                                \
  void shmem_fcollect##BITS(void* dest, const void* source, size_t count, int start, int log_stride, int size,     \
                            long* /*sync*/) {                                                                      \
    UNISONO_SHMEM_NAMED("shmem_fcollect" #BITS);                                                                   \
    guarded([&] {                                                                                                  \
      fcollect(kOperation, set_at(kOperation, start, log_stride, size), dest, source,                              \
               bytes_of(kOperation, count, BYTES));                                                                \
    });                                                                                                            \
  }                                                                                                                \
  void shmem_alltoall##BITS(void* dest, const void* source, size_t count, int start, int log_stride, int size,     \
                            long* /*sync*/) {                                                                      \
    UNISONO_SHMEM_NAMED("shmem_alltoall" #BITS);                                                                   \
    guarded([&] {                                                                                                  \
      alltoall(kOperation, set_at(kOperation, start, log_stride, size), dest, source,                              \
               bytes_of(kOperation, count, BYTES));                                                                \
    });                                                                                                            \
  }                                                                                                                \
  void shmem_alltoalls##BITS(void* dest, const void* source, ptrdiff_t dst_step, ptrdiff_t src_step, size_t count, \
                             int start, int log_stride, int size, long* /*sync*/) {                                \
    UNISONO_SHMEM_NAMED("shmem_alltoalls" #BITS);                                                                  \
    guarded([&] {                                                                                                  \
      bytes_of(kOperation, count, BYTES);                                                                          \
      alltoalls(kOperation, set_at(kOperation, start, log_stride, size), dest, source, dst_step, src_step, count,  \
                BYTES);                                                                                            \
    });                                                                                                            \
  }
DEFINE(32, 4)
DEFINE(64, 8)
#undef DEFINE

void shmem_barrier(int start, int log_stride, int size, long* /*sync*/) {
  UNISONO_SHMEM_NAMED("shmem_barrier");
  guarded([&] {
    Job::of(kOperation).quiet(kOperation);
    sync(kOperation, set_at(kOperation, start, log_stride, size));
  });
}

void shmem_sync(int start, int log_stride, int size, long* /*sync*/) {
  UNISONO_SHMEM_NAMED("shmem_sync");
  guarded([&] { sync(kOperation, set_at(kOperation, start, log_stride, size)); });
}

// The names of before 1.2.
void start_pes(int /*pes*/) { shmem_init(); }
int _my_pe(void) { return shmem_my_pe(); }
int _num_pes(void) { return shmem_n_pes(); }
void* shmalloc(size_t size) { return shmem_malloc(size); }
void* shmemalign(size_t alignment, size_t size) { return shmem_align(alignment, size); }
void* shrealloc(void* memory, size_t size) { return shmem_realloc(memory, size); }
void shfree(void* memory) { shmem_free(memory); }

}  // extern "C"

UNISONO_SHMEM_NAMES_COLLECTIVES
// NOLINTEND(bugprone-macro-parentheses)
