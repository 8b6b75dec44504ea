// The functions of shmem.h that put and get.
#include "doors/shmem/access.hpp"
#include "doors/shmem/interface.hpp"

using namespace unisono::shmem;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

// A put or get that does not wait is one that does: on one host it is a copy, between hosts a put only waits until its
// source may be used again.

// NOLINTBEGIN(bugprone-macro-parentheses): names and types cannot stand in parentheses
extern "C" {

// Typed: DEFINE is redefined for each group, and each row of the table makes both forms.
#define DEFINE(P, C, PE, NAME, TYPE)                                                                \
  void shmem_##P##NAME##_put(C TYPE* dest, const TYPE* source, size_t count, int pe) {              \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_put");                                                  \
    guarded([&] { put(kOperation, dest, source, bytes_of(kOperation, count, sizeof(TYPE)), PE); }); \
  }                                                                                                 \
  void shmem_##P##NAME##_put_nbi(C TYPE* dest, const TYPE* source, size_t count, int pe) {          \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_put_nbi");                                              \
    guarded([&] { put(kOperation, dest, source, bytes_of(kOperation, count, sizeof(TYPE)), PE); }); \
  }                                                                                                 \
  void shmem_##P##NAME##_get(C TYPE* dest, const TYPE* source, size_t count, int pe) {              \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_get");                                                  \
    guarded([&] { get(kOperation, dest, source, bytes_of(kOperation, count, sizeof(TYPE)), PE); }); \
  }                                                                                                 \
  void shmem_##P##NAME##_get_nbi(C TYPE* dest, const TYPE* source, size_t count, int pe) {          \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_get_nbi");                                              \
    guarded([&] { get(kOperation, dest, source, bytes_of(kOperation, count, sizeof(TYPE)), PE); }); \
  }                                                                                                 \
  void shmem_##P##NAME##_p(C TYPE* dest, TYPE value, int pe) {                                      \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_p");                                                    \
    guarded([&] { put(kOperation, dest, &value, sizeof(TYPE), PE); });                              \
  }                                                                                                 \
  TYPE shmem_##P##NAME##_g(C const TYPE* source, int pe) {                                          \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_g");                                                    \
    return guarded([&] {                                                                            \
      TYPE value;                                                                                   \
      get(kOperation, &value, source, sizeof(TYPE), PE);                                            \
      return value;                                                                                 \
    });                                                                                             \
  }
UNISONO_SHMEM_RMA_TYPES(UNISONO_SHMEM_BOTH)
#undef DEFINE

#define DEFINE(P, C, PE, NAME, TYPE)                                                                                  \
  void shmem_##P##NAME##_iput(C TYPE* dest, const TYPE* source, ptrdiff_t dst_step, ptrdiff_t src_step, size_t count, \
                              int pe) {                                                                               \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_iput");                                                                   \
    guarded([&] { strided(put, kOperation, dest, source, dst_step, src_step, count, sizeof(TYPE), PE); });            \
  }                                                                                                                   \
  void shmem_##P##NAME##_iget(C TYPE* dest, const TYPE* source, ptrdiff_t dst_step, ptrdiff_t src_step, size_t count, \
                              int pe) {                                                                               \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_iget");                                                                   \
    guarded([&] { strided(get, kOperation, dest, source, dst_step, src_step, count, sizeof(TYPE), PE); });            \
  }                                                                                                                   \
  void shmem_##P##NAME##_put_signal(C TYPE* dest, const TYPE* source, size_t count, uint64_t* signal, uint64_t value, \
                                    int how, int pe) {                                                                \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_put_signal");                                                             \
    guarded([&] {                                                                                                     \
      put_signal(kOperation, dest, source, bytes_of(kOperation, count, sizeof(TYPE)), signal, value, how, PE);        \
    });                                                                                                               \
  }                                                                                                                   \
  void shmem_##P##NAME##_put_signal_nbi(C TYPE* dest, const TYPE* source, size_t count, uint64_t* signal,             \
                                        uint64_t value, int how, int pe) {                                            \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_put_signal_nbi");                                                         \
    guarded([&] {                                                                                                     \
      put_signal(kOperation, dest, source, bytes_of(kOperation, count, sizeof(TYPE)), signal, value, how, PE);        \
    });                                                                                                               \
  }
UNISONO_SHMEM_RMA_TYPES(UNISONO_SHMEM_BOTH)
#undef DEFINE

// By width: NAME is the number of bits, BYTES the width.
#define DEFINE(P, C, PE, NAME, BYTES)                                                                                  \
  void shmem_##P##put##NAME(C void* dest, const void* source, size_t count, int pe) {                                  \
    UNISONO_SHMEM_NAMED("shmem_" #P "put" #NAME);                                                                      \
    guarded([&] { put(kOperation, dest, source, bytes_of(kOperation, count, BYTES), PE); });                           \
  }                                                                                                                    \
  void shmem_##P##put##NAME##_nbi(C void* dest, const void* source, size_t count, int pe) {                            \
    UNISONO_SHMEM_NAMED("shmem_" #P "put" #NAME "_nbi");                                                               \
    guarded([&] { put(kOperation, dest, source, bytes_of(kOperation, count, BYTES), PE); });                           \
  }                                                                                                                    \
  void shmem_##P##get##NAME(C void* dest, const void* source, size_t count, int pe) {                                  \
    UNISONO_SHMEM_NAMED("shmem_" #P "get" #NAME);                                                                      \
    guarded([&] { get(kOperation, dest, source, bytes_of(kOperation, count, BYTES), PE); });                           \
  }                                                                                                                    \
  void shmem_##P##get##NAME##_nbi(C void* dest, const void* source, size_t count, int pe) {                            \
    UNISONO_SHMEM_NAMED("shmem_" #P "get" #NAME "_nbi");                                                               \
    guarded([&] { get(kOperation, dest, source, bytes_of(kOperation, count, BYTES), PE); });                           \
  }                                                                                                                    \
  void shmem_##P##put##NAME##_signal(C void* dest, const void* source, size_t count, uint64_t* signal, uint64_t value, \
                                     int how, int pe) {                                                                \
    UNISONO_SHMEM_NAMED("shmem_" #P "put" #NAME "_signal");                                                            \
    guarded(                                                                                                           \
        [&] { put_signal(kOperation, dest, source, bytes_of(kOperation, count, BYTES), signal, value, how, PE); });    \
  }                                                                                                                    \
  void shmem_##P##put##NAME##_signal_nbi(C void* dest, const void* source, size_t count, uint64_t* signal,             \
                                         uint64_t value, int how, int pe) {                                            \
    UNISONO_SHMEM_NAMED("shmem_" #P "put" #NAME "_signal_nbi");                                                        \
    guarded(                                                                                                           \
        [&] { put_signal(kOperation, dest, source, bytes_of(kOperation, count, BYTES), signal, value, how, PE); });    \
  }
UNISONO_SHMEM_RMA_SIZES(UNISONO_SHMEM_BOTH)
UNISONO_SHMEM_BOTH(mem, 1)
#undef DEFINE

#define DEFINE(P, C, PE, NAME, BYTES)                                                                                \
  void shmem_##P##iput##NAME(C void* dest, const void* source, ptrdiff_t dst_step, ptrdiff_t src_step, size_t count, \
                             int pe) {                                                                               \
    UNISONO_SHMEM_NAMED("shmem_" #P "iput" #NAME);                                                                   \
    guarded([&] { strided(put, kOperation, dest, source, dst_step, src_step, count, BYTES, PE); });                  \
  }                                                                                                                  \
  void shmem_##P##iget##NAME(C void* dest, const void* source, ptrdiff_t dst_step, ptrdiff_t src_step, size_t count, \
                             int pe) {                                                                               \
    UNISONO_SHMEM_NAMED("shmem_" #P "iget" #NAME);                                                                   \
    guarded([&] { strided(get, kOperation, dest, source, dst_step, src_step, count, BYTES, PE); });                  \
  }
UNISONO_SHMEM_RMA_SIZES(UNISONO_SHMEM_BOTH)
#undef DEFINE

}  // extern "C"

UNISONO_SHMEM_NAMES_ACCESS
// NOLINTEND(bugprone-macro-parentheses)
