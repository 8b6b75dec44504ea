/* OpenSHMEM 1.5 over Unisono: symmetric memory, put and get, atomics, signals, waits, teams and their collectives.
 *
 * Names, arguments and meaning are the standard's; docs/shmem.md says what a program can do, what is not carried, and
 * what each function costs. In short:
 *
 *   symmetric memory   shmem_malloc and its like, and the program's global and static variables
 *   on one host        put and get are copies by the caller, atomics are the processor's; the peer does nothing
 *   between hosts      the peer's process carries them out: where it waits, or in a thread of its own
 *   wrong use          a sentence on standard error, and the end of the job; nothing has been sent
 *   waits              end with a sentence when a PE has died, and at the deadline (UNISONO_SHMEM_TIMEOUT_S; 300 s)
 *
 * All functions may be called by several threads at once, collectives of one team in one order on all PEs. */
#ifndef UNISONO_SHMEM_H
#define UNISONO_SHMEM_H

#include <stddef.h>
#include <stdint.h>

#include "unisono_shmem/lists.h"

#if defined(__GNUC__)
#define UNISONO_SHMEM_API __attribute__((visibility("default")))
#else
#define UNISONO_SHMEM_API
#endif

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 5
#define SHMEM_MAX_NAME_LEN 64
#define SHMEM_VENDOR_STRING "Unisono"

/* Levels of threads; whichever is asked for is given. */
#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

/* Comparisons of waits and tests. */
#define SHMEM_CMP_EQ 1
#define SHMEM_CMP_NE 2
#define SHMEM_CMP_GT 3
#define SHMEM_CMP_LE 4
#define SHMEM_CMP_LT 5
#define SHMEM_CMP_GE 6

/* What put-with-signal does to the signal word. */
#define SHMEM_SIGNAL_SET 1
#define SHMEM_SIGNAL_ADD 2

/* Options of contexts, and hints of memory: taken, and of no effect. */
#define SHMEM_CTX_SERIALIZED 1L
#define SHMEM_CTX_PRIVATE 2L
#define SHMEM_CTX_NOSTORE 4L
#define SHMEM_MALLOC_ATOMICS_REMOTE 1L
#define SHMEM_MALLOC_SIGNAL_REMOTE 2L

/* Handles. They are compared, and never looked into. */
typedef struct unisono_shmem_team* shmem_team_t;
typedef struct unisono_shmem_ctx* shmem_ctx_t;
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED ((shmem_team_t)2) /* the PEs of this host */
#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)1)

typedef struct {
  int num_contexts; /* as many as wanted can be made */
} shmem_team_config_t;
#define SHMEM_TEAM_NUM_CONTEXTS 1L

/* Sizes and first value of the work arrays of active sets, which are not looked at. */
#define SHMEM_SYNC_VALUE 0L
#define SHMEM_SYNC_SIZE 1
#define SHMEM_BARRIER_SYNC_SIZE 1
#define SHMEM_BCAST_SYNC_SIZE 1
#define SHMEM_COLLECT_SYNC_SIZE 1
#define SHMEM_REDUCE_SYNC_SIZE 1
#define SHMEM_ALLTOALL_SYNC_SIZE 1
#define SHMEM_ALLTOALLS_SYNC_SIZE 1
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE 1
#define _SHMEM_BCAST_SYNC_SIZE 1
#define _SHMEM_COLLECT_SYNC_SIZE 1
#define _SHMEM_REDUCE_SYNC_SIZE 1
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE 1
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_GE SHMEM_CMP_GE

#ifdef __cplusplus
extern "C" {
#endif

/* Beginning and end. The heap's size is that of SHMEM_SYMMETRIC_SIZE (1G, 512M; 256M if nothing is said), the same on
 * all PEs. */
UNISONO_SHMEM_API void shmem_init(void);
UNISONO_SHMEM_API int shmem_init_thread(int requested, int* provided);
UNISONO_SHMEM_API void shmem_query_thread(int* provided);
UNISONO_SHMEM_API void shmem_finalize(void);
UNISONO_SHMEM_API void shmem_global_exit(int status);
/* For tools that put functions of their own before these (pshmem.h): does nothing. */
UNISONO_SHMEM_API void shmem_pcontrol(int level, ...);
UNISONO_SHMEM_API int shmem_my_pe(void);
UNISONO_SHMEM_API int shmem_n_pes(void);
UNISONO_SHMEM_API int shmem_pe_accessible(int pe);
UNISONO_SHMEM_API int shmem_addr_accessible(const void* address, int pe);
UNISONO_SHMEM_API void* shmem_ptr(const void* dest, int pe);
UNISONO_SHMEM_API void shmem_info_get_version(int* major, int* minor);
UNISONO_SHMEM_API void shmem_info_get_name(char* name);

/* Symmetric memory. Collective over all PEs, with the same arguments. Null if the heap has no such piece left;
 * alignments are 64 MiB at most. */
UNISONO_SHMEM_API void* shmem_malloc(size_t size);
UNISONO_SHMEM_API void* shmem_calloc(size_t count, size_t size);
UNISONO_SHMEM_API void* shmem_align(size_t alignment, size_t size);
UNISONO_SHMEM_API void* shmem_realloc(void* memory, size_t size);
UNISONO_SHMEM_API void* shmem_malloc_with_hints(size_t size, long hints);
UNISONO_SHMEM_API void shmem_free(void* memory);

/* Order and completion. */
UNISONO_SHMEM_API void shmem_fence(void);
UNISONO_SHMEM_API void shmem_quiet(void);
UNISONO_SHMEM_API void shmem_barrier_all(void);
UNISONO_SHMEM_API void shmem_sync_all(void);
UNISONO_SHMEM_API void shmem_ctx_fence(shmem_ctx_t ctx);
UNISONO_SHMEM_API void shmem_ctx_quiet(shmem_ctx_t ctx);
UNISONO_SHMEM_API int shmem_ctx_create(long options, shmem_ctx_t* ctx);
UNISONO_SHMEM_API int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t* ctx);
UNISONO_SHMEM_API int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t* team);
UNISONO_SHMEM_API void shmem_ctx_destroy(shmem_ctx_t ctx);

/* Put and get: `count` elements; of the strided forms every dst_step-th to or from every src_step-th element. Those
 * that do not wait (nbi) are done when they return, or, for puts to another host, at the next quiet. */
#define UNISONO_SHMEM_DECLARE(P, C, NAME, TYPE)                                                               \
  UNISONO_SHMEM_API void shmem_##P##NAME##_put(C TYPE* dest, const TYPE* source, size_t count, int pe);       \
  UNISONO_SHMEM_API void shmem_##P##NAME##_get(C TYPE* dest, const TYPE* source, size_t count, int pe);       \
  UNISONO_SHMEM_API void shmem_##P##NAME##_put_nbi(C TYPE* dest, const TYPE* source, size_t count, int pe);   \
  UNISONO_SHMEM_API void shmem_##P##NAME##_get_nbi(C TYPE* dest, const TYPE* source, size_t count, int pe);   \
  UNISONO_SHMEM_API void shmem_##P##NAME##_iput(C TYPE* dest, const TYPE* source, ptrdiff_t dst_step,         \
                                                ptrdiff_t src_step, size_t count, int pe);                    \
  UNISONO_SHMEM_API void shmem_##P##NAME##_iget(C TYPE* dest, const TYPE* source, ptrdiff_t dst_step,         \
                                                ptrdiff_t src_step, size_t count, int pe);                    \
  UNISONO_SHMEM_API void shmem_##P##NAME##_put_signal(C TYPE* dest, const TYPE* source, size_t count,         \
                                                      uint64_t* signal, uint64_t value, int how, int pe);     \
  UNISONO_SHMEM_API void shmem_##P##NAME##_put_signal_nbi(C TYPE* dest, const TYPE* source, size_t count,     \
                                                          uint64_t* signal, uint64_t value, int how, int pe); \
  UNISONO_SHMEM_API void shmem_##P##NAME##_p(C TYPE* dest, TYPE value, int pe);                               \
  UNISONO_SHMEM_API TYPE shmem_##P##NAME##_g(C const TYPE* source, int pe);
#define UNISONO_SHMEM_CTX shmem_ctx_t ctx,
#define UNISONO_SHMEM_DECLARE_BOTH(NAME, TYPE) \
  UNISONO_SHMEM_DECLARE(, , NAME, TYPE) UNISONO_SHMEM_DECLARE(ctx_, UNISONO_SHMEM_CTX, NAME, TYPE)
UNISONO_SHMEM_RMA_TYPES(UNISONO_SHMEM_DECLARE_BOTH)
#undef UNISONO_SHMEM_DECLARE_BOTH
#undef UNISONO_SHMEM_DECLARE

/* The same by the width of elements: shmem_put64 moves elements of 64 bits, shmem_putmem bytes. */
#define UNISONO_SHMEM_DECLARE(P, C, NAME)                                                                    \
  UNISONO_SHMEM_API void shmem_##P##put##NAME(C void* dest, const void* source, size_t count, int pe);       \
  UNISONO_SHMEM_API void shmem_##P##get##NAME(C void* dest, const void* source, size_t count, int pe);       \
  UNISONO_SHMEM_API void shmem_##P##put##NAME##_nbi(C void* dest, const void* source, size_t count, int pe); \
  UNISONO_SHMEM_API void shmem_##P##get##NAME##_nbi(C void* dest, const void* source, size_t count, int pe); \
  UNISONO_SHMEM_API void shmem_##P##put##NAME##_signal(C void* dest, const void* source, size_t count,       \
                                                       uint64_t* signal, uint64_t value, int how, int pe);   \
  UNISONO_SHMEM_API void shmem_##P##put##NAME##_signal_nbi(C void* dest, const void* source, size_t count,   \
                                                           uint64_t* signal, uint64_t value, int how, int pe);
#define UNISONO_SHMEM_DECLARE_STRIDED(P, C, NAME)                                                    \
  UNISONO_SHMEM_API void shmem_##P##iput##NAME(C void* dest, const void* source, ptrdiff_t dst_step, \
                                               ptrdiff_t src_step, size_t count, int pe);            \
  UNISONO_SHMEM_API void shmem_##P##iget##NAME(C void* dest, const void* source, ptrdiff_t dst_step, \
                                               ptrdiff_t src_step, size_t count, int pe);
#define UNISONO_SHMEM_DECLARE_ALL(NAME, BYTES)         \
  UNISONO_SHMEM_DECLARE(, , NAME)                      \
  UNISONO_SHMEM_DECLARE(ctx_, UNISONO_SHMEM_CTX, NAME) \
  UNISONO_SHMEM_DECLARE_STRIDED(, , NAME)              \
  UNISONO_SHMEM_DECLARE_STRIDED(ctx_, UNISONO_SHMEM_CTX, NAME)
UNISONO_SHMEM_RMA_SIZES(UNISONO_SHMEM_DECLARE_ALL)
UNISONO_SHMEM_DECLARE(, , mem)
UNISONO_SHMEM_DECLARE(ctx_, UNISONO_SHMEM_CTX, mem)
#undef UNISONO_SHMEM_DECLARE_ALL
#undef UNISONO_SHMEM_DECLARE_STRIDED
#undef UNISONO_SHMEM_DECLARE

/* Atomics: on one host the processor's, on the peer's memory; between hosts those of the peer's processor. The forms
 * with nbi are done when they return. */
#define UNISONO_SHMEM_DECLARE(P, C, NAME, TYPE)                                                         \
  UNISONO_SHMEM_API TYPE shmem_##P##NAME##_atomic_fetch(C const TYPE* source, int pe);                  \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_set(C TYPE* dest, TYPE value, int pe);                \
  UNISONO_SHMEM_API TYPE shmem_##P##NAME##_atomic_swap(C TYPE* dest, TYPE value, int pe);               \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_fetch_nbi(C TYPE* fetch, const TYPE* source, int pe); \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_swap_nbi(C TYPE* fetch, TYPE* dest, TYPE value, int pe);
#define UNISONO_SHMEM_DECLARE_BOTH(NAME, TYPE) \
  UNISONO_SHMEM_DECLARE(, , NAME, TYPE) UNISONO_SHMEM_DECLARE(ctx_, UNISONO_SHMEM_CTX, NAME, TYPE)
UNISONO_SHMEM_AMO_TYPES(UNISONO_SHMEM_DECLARE_BOTH)
UNISONO_SHMEM_AMO_REAL(UNISONO_SHMEM_DECLARE_BOTH)
#undef UNISONO_SHMEM_DECLARE
#define UNISONO_SHMEM_DECLARE(P, C, NAME, TYPE)                                                                      \
  UNISONO_SHMEM_API TYPE shmem_##P##NAME##_atomic_compare_swap(C TYPE* dest, TYPE cond, TYPE value, int pe);         \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_compare_swap_nbi(C TYPE* fetch, TYPE* dest, TYPE cond, TYPE value, \
                                                                   int pe);                                          \
  UNISONO_SHMEM_API TYPE shmem_##P##NAME##_atomic_fetch_inc(C TYPE* dest, int pe);                                   \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_fetch_inc_nbi(C TYPE* fetch, TYPE* dest, int pe);                  \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_inc(C TYPE* dest, int pe);                                         \
  UNISONO_SHMEM_API TYPE shmem_##P##NAME##_atomic_fetch_add(C TYPE* dest, TYPE value, int pe);                       \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_fetch_add_nbi(C TYPE* fetch, TYPE* dest, TYPE value, int pe);      \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_add(C TYPE* dest, TYPE value, int pe);
UNISONO_SHMEM_AMO_TYPES(UNISONO_SHMEM_DECLARE_BOTH)
#undef UNISONO_SHMEM_DECLARE
#define UNISONO_SHMEM_DECLARE(P, C, NAME, TYPE)                                                                 \
  UNISONO_SHMEM_API TYPE shmem_##P##NAME##_atomic_fetch_and(C TYPE* dest, TYPE value, int pe);                  \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_fetch_and_nbi(C TYPE* fetch, TYPE* dest, TYPE value, int pe); \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_and(C TYPE* dest, TYPE value, int pe);
UNISONO_SHMEM_AMO_BITS(UNISONO_SHMEM_DECLARE_BOTH)
#undef UNISONO_SHMEM_DECLARE
#define UNISONO_SHMEM_DECLARE(P, C, NAME, TYPE)                                                                \
  UNISONO_SHMEM_API TYPE shmem_##P##NAME##_atomic_fetch_or(C TYPE* dest, TYPE value, int pe);                  \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_fetch_or_nbi(C TYPE* fetch, TYPE* dest, TYPE value, int pe); \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_or(C TYPE* dest, TYPE value, int pe);
UNISONO_SHMEM_AMO_BITS(UNISONO_SHMEM_DECLARE_BOTH)
#undef UNISONO_SHMEM_DECLARE
#define UNISONO_SHMEM_DECLARE(P, C, NAME, TYPE)                                                                 \
  UNISONO_SHMEM_API TYPE shmem_##P##NAME##_atomic_fetch_xor(C TYPE* dest, TYPE value, int pe);                  \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_fetch_xor_nbi(C TYPE* fetch, TYPE* dest, TYPE value, int pe); \
  UNISONO_SHMEM_API void shmem_##P##NAME##_atomic_xor(C TYPE* dest, TYPE value, int pe);
UNISONO_SHMEM_AMO_BITS(UNISONO_SHMEM_DECLARE_BOTH)
#undef UNISONO_SHMEM_DECLARE
#undef UNISONO_SHMEM_DECLARE_BOTH

/* Waits and tests on this PE's symmetric memory. `status` may be null; elements with status[i] != 0 are passed over. */
#define UNISONO_SHMEM_DECLARE(NAME, TYPE)                                                                              \
  UNISONO_SHMEM_API void shmem_##NAME##_wait_until(TYPE* ivar, int cmp, TYPE value);                                   \
  UNISONO_SHMEM_API int shmem_##NAME##_test(TYPE* ivar, int cmp, TYPE value);                                          \
  UNISONO_SHMEM_API void shmem_##NAME##_wait_until_all(TYPE* ivars, size_t count, const int* status, int cmp,          \
                                                       TYPE value);                                                    \
  UNISONO_SHMEM_API size_t shmem_##NAME##_wait_until_any(TYPE* ivars, size_t count, const int* status, int cmp,        \
                                                         TYPE value);                                                  \
  UNISONO_SHMEM_API size_t shmem_##NAME##_wait_until_some(TYPE* ivars, size_t count, size_t* indices,                  \
                                                          const int* status, int cmp, TYPE value);                     \
  UNISONO_SHMEM_API void shmem_##NAME##_wait_until_all_vector(TYPE* ivars, size_t count, const int* status, int cmp,   \
                                                              TYPE* values);                                           \
  UNISONO_SHMEM_API size_t shmem_##NAME##_wait_until_any_vector(TYPE* ivars, size_t count, const int* status, int cmp, \
                                                                TYPE* values);                                         \
  UNISONO_SHMEM_API size_t shmem_##NAME##_wait_until_some_vector(TYPE* ivars, size_t count, size_t* indices,           \
                                                                 const int* status, int cmp, TYPE* values);            \
  UNISONO_SHMEM_API int shmem_##NAME##_test_all(TYPE* ivars, size_t count, const int* status, int cmp, TYPE value);    \
  UNISONO_SHMEM_API size_t shmem_##NAME##_test_any(TYPE* ivars, size_t count, const int* status, int cmp, TYPE value); \
  UNISONO_SHMEM_API size_t shmem_##NAME##_test_some(TYPE* ivars, size_t count, size_t* indices, const int* status,     \
                                                    int cmp, TYPE value);                                              \
  UNISONO_SHMEM_API int shmem_##NAME##_test_all_vector(TYPE* ivars, size_t count, const int* status, int cmp,          \
                                                       TYPE* values);                                                  \
  UNISONO_SHMEM_API size_t shmem_##NAME##_test_any_vector(TYPE* ivars, size_t count, const int* status, int cmp,       \
                                                          TYPE* values);                                               \
  UNISONO_SHMEM_API size_t shmem_##NAME##_test_some_vector(TYPE* ivars, size_t count, size_t* indices,                 \
                                                           const int* status, int cmp, TYPE* values);
UNISONO_SHMEM_SYNC_TYPES(UNISONO_SHMEM_DECLARE)
#undef UNISONO_SHMEM_DECLARE
UNISONO_SHMEM_API uint64_t shmem_signal_fetch(const uint64_t* signal);
UNISONO_SHMEM_API uint64_t shmem_signal_wait_until(uint64_t* signal, int cmp, uint64_t value);

/* Locks: `lock` is symmetric, and 0 at first. */
UNISONO_SHMEM_API void shmem_set_lock(long* lock);
UNISONO_SHMEM_API void shmem_clear_lock(long* lock);
UNISONO_SHMEM_API int shmem_test_lock(long* lock);

/* Teams. Splits are collective over the parent; those who are in no part get SHMEM_TEAM_INVALID. */
UNISONO_SHMEM_API int shmem_team_my_pe(shmem_team_t team);
UNISONO_SHMEM_API int shmem_team_n_pes(shmem_team_t team);
UNISONO_SHMEM_API int shmem_team_get_config(shmem_team_t team, long mask, shmem_team_config_t* config);
UNISONO_SHMEM_API int shmem_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to);
UNISONO_SHMEM_API int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
                                               const shmem_team_config_t* config, long mask, shmem_team_t* made);
UNISONO_SHMEM_API int shmem_team_split_2d(shmem_team_t parent, int width, const shmem_team_config_t* x_config,
                                          long x_mask, shmem_team_t* x, const shmem_team_config_t* y_config,
                                          long y_mask, shmem_team_t* y);
UNISONO_SHMEM_API void shmem_team_destroy(shmem_team_t team);
UNISONO_SHMEM_API int shmem_team_sync(shmem_team_t team);
UNISONO_SHMEM_API void* shmem_team_ptr(shmem_team_t team, const void* dest, int pe);

/* Collectives of a team; 0 if they succeed. */
#define UNISONO_SHMEM_DECLARE(NAME, TYPE)                                                                         \
  UNISONO_SHMEM_API int shmem_##NAME##_broadcast(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count, \
                                                 int root);                                                       \
  UNISONO_SHMEM_API int shmem_##NAME##_collect(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count);  \
  UNISONO_SHMEM_API int shmem_##NAME##_fcollect(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count); \
  UNISONO_SHMEM_API int shmem_##NAME##_alltoall(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count); \
  UNISONO_SHMEM_API int shmem_##NAME##_alltoalls(shmem_team_t team, TYPE* dest, const TYPE* source,               \
                                                 ptrdiff_t dst_step, ptrdiff_t src_step, size_t count);
UNISONO_SHMEM_RMA_TYPES(UNISONO_SHMEM_DECLARE)
#undef UNISONO_SHMEM_DECLARE
UNISONO_SHMEM_API int shmem_broadcastmem(shmem_team_t team, void* dest, const void* source, size_t count, int root);
UNISONO_SHMEM_API int shmem_collectmem(shmem_team_t team, void* dest, const void* source, size_t count);
UNISONO_SHMEM_API int shmem_fcollectmem(shmem_team_t team, void* dest, const void* source, size_t count);
UNISONO_SHMEM_API int shmem_alltoallmem(shmem_team_t team, void* dest, const void* source, size_t count);
UNISONO_SHMEM_API int shmem_alltoallsmem(shmem_team_t team, void* dest, const void* source, ptrdiff_t dst_step,
                                         ptrdiff_t src_step, size_t count);
#define UNISONO_SHMEM_DECLARE(NAME, TYPE, OP) \
  UNISONO_SHMEM_API int shmem_##NAME##_##OP##_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count);
#define UNISONO_SHMEM_DECLARE_BITS(NAME, TYPE) \
  UNISONO_SHMEM_DECLARE(NAME, TYPE, and) UNISONO_SHMEM_DECLARE(NAME, TYPE, or) UNISONO_SHMEM_DECLARE(NAME, TYPE, xor)
#define UNISONO_SHMEM_DECLARE_ORDER(NAME, TYPE) \
  UNISONO_SHMEM_DECLARE(NAME, TYPE, max) UNISONO_SHMEM_DECLARE(NAME, TYPE, min)
#define UNISONO_SHMEM_DECLARE_SUM(NAME, TYPE) \
  UNISONO_SHMEM_DECLARE(NAME, TYPE, sum) UNISONO_SHMEM_DECLARE(NAME, TYPE, prod)
UNISONO_SHMEM_BIT_TYPES(UNISONO_SHMEM_DECLARE_BITS)
UNISONO_SHMEM_ORDER_TYPES(UNISONO_SHMEM_DECLARE_ORDER)
UNISONO_SHMEM_SUM_TYPES(UNISONO_SHMEM_DECLARE_SUM)
#undef UNISONO_SHMEM_DECLARE

#ifdef __cplusplus
}
#endif

#include "unisono_shmem/deprecated.h"
#include "unisono_shmem/generic.h"
#include "unisono_shmem/overloads.h"

#undef UNISONO_SHMEM_DECLARE_BITS
#undef UNISONO_SHMEM_DECLARE_ORDER
#undef UNISONO_SHMEM_DECLARE_SUM
#undef UNISONO_SHMEM_CTX

#include "pshmem.h"

#ifdef __cplusplus
/* Beside shmem_sync of active sets (deprecated.h). */
inline int shmem_sync(shmem_team_t team) { return shmem_team_sync(team); }
#endif

#endif
