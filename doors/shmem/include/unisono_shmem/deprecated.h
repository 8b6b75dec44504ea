/* What OpenSHMEM 1.5 still has and advises against: collectives of active sets, atomics by their old names, the names
 * of before 1.2. Included by shmem.h.
 *
 * An active set is the PEs start, start + 2^log_stride, ..., `size` of them. Its first collective makes a communicator,
 * which is kept; `sync` and `work` are not looked at. */
#ifndef UNISONO_SHMEM_DEPRECATED_H
#define UNISONO_SHMEM_DEPRECATED_H

#ifdef __cplusplus
extern "C" {
#endif

UNISONO_SHMEM_API void shmem_barrier(int start, int log_stride, int size, long* sync);
UNISONO_SHMEM_API void shmem_sync(int start, int log_stride, int size, long* sync);
#define UNISONO_SHMEM_DECLARE(BITS)                                                                                    \
  UNISONO_SHMEM_API void shmem_broadcast##BITS(void* dest, const void* source, size_t count, int root, int start,      \
                                               int log_stride, int size, long* sync);                                  \
  UNISONO_SHMEM_API void shmem_collect##BITS(void* dest, const void* source, size_t count, int start, int log_stride,  \
                                             int size, long* sync);                                                    \
  UNISONO_SHMEM_API void shmem_fcollect##BITS(void* dest, const void* source, size_t count, int start, int log_stride, \
                                              int size, long* sync);                                                   \
  UNISONO_SHMEM_API void shmem_alltoall##BITS(void* dest, const void* source, size_t count, int start, int log_stride, \
                                              int size, long* sync);                                                   \
  UNISONO_SHMEM_API void shmem_alltoalls##BITS(void* dest, const void* source, ptrdiff_t dst_step, ptrdiff_t src_step, \
                                               size_t count, int start, int log_stride, int size, long* sync);
UNISONO_SHMEM_DECLARE(32)
UNISONO_SHMEM_DECLARE(64)
#undef UNISONO_SHMEM_DECLARE
#define UNISONO_SHMEM_DECLARE(NAME, TYPE, OP)                                                               \
  UNISONO_SHMEM_API void shmem_##NAME##_##OP##_to_all(TYPE* dest, const TYPE* source, int count, int start, \
                                                      int log_stride, int size, TYPE* work, long* sync);
UNISONO_SHMEM_OLD_BIT_TYPES(UNISONO_SHMEM_DECLARE_BITS)
UNISONO_SHMEM_OLD_ORDER_TYPES(UNISONO_SHMEM_DECLARE_ORDER)
UNISONO_SHMEM_OLD_SUM_TYPES(UNISONO_SHMEM_DECLARE_SUM)
#undef UNISONO_SHMEM_DECLARE

#define UNISONO_SHMEM_DECLARE(NAME, TYPE)                                    \
  UNISONO_SHMEM_API TYPE shmem_##NAME##_fetch(const TYPE* source, int pe);   \
  UNISONO_SHMEM_API void shmem_##NAME##_set(TYPE* dest, TYPE value, int pe); \
  UNISONO_SHMEM_API TYPE shmem_##NAME##_swap(TYPE* dest, TYPE value, int pe);
UNISONO_SHMEM_WIDE_SIGNED(UNISONO_SHMEM_DECLARE)
UNISONO_SHMEM_AMO_REAL(UNISONO_SHMEM_DECLARE)
#undef UNISONO_SHMEM_DECLARE
#define UNISONO_SHMEM_DECLARE(NAME, TYPE)                                                 \
  UNISONO_SHMEM_API TYPE shmem_##NAME##_cswap(TYPE* dest, TYPE cond, TYPE value, int pe); \
  UNISONO_SHMEM_API TYPE shmem_##NAME##_finc(TYPE* dest, int pe);                         \
  UNISONO_SHMEM_API void shmem_##NAME##_inc(TYPE* dest, int pe);                          \
  UNISONO_SHMEM_API TYPE shmem_##NAME##_fadd(TYPE* dest, TYPE value, int pe);             \
  UNISONO_SHMEM_API void shmem_##NAME##_add(TYPE* dest, TYPE value, int pe);
UNISONO_SHMEM_WIDE_SIGNED(UNISONO_SHMEM_DECLARE)
#undef UNISONO_SHMEM_DECLARE

/* Until it is no longer `value`. */
#define UNISONO_SHMEM_DECLARE(NAME, TYPE) UNISONO_SHMEM_API void shmem_##NAME##_wait(TYPE* ivar, TYPE value);
UNISONO_SHMEM_OLD_BIT_TYPES(UNISONO_SHMEM_DECLARE)
#undef UNISONO_SHMEM_DECLARE
UNISONO_SHMEM_API void shmem_wait(long* ivar, long value);

UNISONO_SHMEM_API void start_pes(int pes);
UNISONO_SHMEM_API int _my_pe(void);
UNISONO_SHMEM_API int _num_pes(void);
UNISONO_SHMEM_API void* shmalloc(size_t size);
UNISONO_SHMEM_API void* shmemalign(size_t alignment, size_t size);
UNISONO_SHMEM_API void* shrealloc(void* memory, size_t size);
UNISONO_SHMEM_API void shfree(void* memory);

#ifdef __cplusplus
}
#endif

#endif
