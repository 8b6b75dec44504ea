/* The forms without a type in their names for C++: overloads of shmem_put, shmem_atomic_add, shmem_sum_reduce and so
 * on, with or without a context in front. Included by shmem.h. */
#ifndef UNISONO_SHMEM_OVERLOADS_H
#define UNISONO_SHMEM_OVERLOADS_H

#ifdef __cplusplus

/* clang-format off */
#define UNISONO_SHMEM_DEFINE(NAME, TYPE) \
  inline void shmem_put(TYPE* dest, const TYPE* source, size_t count, int pe) { shmem_##NAME##_put(dest, source, count, pe); } \
  inline void shmem_put(shmem_ctx_t ctx, TYPE* dest, const TYPE* source, size_t count, int pe) { shmem_ctx_##NAME##_put(ctx, dest, source, count, pe); } \
  inline void shmem_get(TYPE* dest, const TYPE* source, size_t count, int pe) { shmem_##NAME##_get(dest, source, count, pe); } \
  inline void shmem_get(shmem_ctx_t ctx, TYPE* dest, const TYPE* source, size_t count, int pe) { shmem_ctx_##NAME##_get(ctx, dest, source, count, pe); } \
  inline void shmem_put_nbi(TYPE* dest, const TYPE* source, size_t count, int pe) { shmem_##NAME##_put_nbi(dest, source, count, pe); } \
  inline void shmem_put_nbi(shmem_ctx_t ctx, TYPE* dest, const TYPE* source, size_t count, int pe) { shmem_ctx_##NAME##_put_nbi(ctx, dest, source, count, pe); } \
  inline void shmem_get_nbi(TYPE* dest, const TYPE* source, size_t count, int pe) { shmem_##NAME##_get_nbi(dest, source, count, pe); } \
  inline void shmem_get_nbi(shmem_ctx_t ctx, TYPE* dest, const TYPE* source, size_t count, int pe) { shmem_ctx_##NAME##_get_nbi(ctx, dest, source, count, pe); } \
  inline void shmem_iput(TYPE* dest, const TYPE* source, ptrdiff_t dst_step, ptrdiff_t src_step, size_t count, int pe) { shmem_##NAME##_iput(dest, source, dst_step, src_step, count, pe); } \
  inline void shmem_iput(shmem_ctx_t ctx, TYPE* dest, const TYPE* source, ptrdiff_t dst_step, ptrdiff_t src_step, size_t count, int pe) { shmem_ctx_##NAME##_iput(ctx, dest, source, dst_step, src_step, count, pe); } \
  inline void shmem_iget(TYPE* dest, const TYPE* source, ptrdiff_t dst_step, ptrdiff_t src_step, size_t count, int pe) { shmem_##NAME##_iget(dest, source, dst_step, src_step, count, pe); } \
  inline void shmem_iget(shmem_ctx_t ctx, TYPE* dest, const TYPE* source, ptrdiff_t dst_step, ptrdiff_t src_step, size_t count, int pe) { shmem_ctx_##NAME##_iget(ctx, dest, source, dst_step, src_step, count, pe); } \
  inline void shmem_put_signal(TYPE* dest, const TYPE* source, size_t count, uint64_t* signal, uint64_t value, int how, int pe) { shmem_##NAME##_put_signal(dest, source, count, signal, value, how, pe); } \
  inline void shmem_put_signal(shmem_ctx_t ctx, TYPE* dest, const TYPE* source, size_t count, uint64_t* signal, uint64_t value, int how, int pe) { shmem_ctx_##NAME##_put_signal(ctx, dest, source, count, signal, value, how, pe); } \
  inline void shmem_put_signal_nbi(TYPE* dest, const TYPE* source, size_t count, uint64_t* signal, uint64_t value, int how, int pe) { shmem_##NAME##_put_signal_nbi(dest, source, count, signal, value, how, pe); } \
  inline void shmem_put_signal_nbi(shmem_ctx_t ctx, TYPE* dest, const TYPE* source, size_t count, uint64_t* signal, uint64_t value, int how, int pe) { shmem_ctx_##NAME##_put_signal_nbi(ctx, dest, source, count, signal, value, how, pe); } \
  inline void shmem_p(TYPE* dest, TYPE value, int pe) { shmem_##NAME##_p(dest, value, pe); } \
  inline void shmem_p(shmem_ctx_t ctx, TYPE* dest, TYPE value, int pe) { shmem_ctx_##NAME##_p(ctx, dest, value, pe); } \
  inline TYPE shmem_g(const TYPE* source, int pe) { return shmem_##NAME##_g(source, pe); } \
  inline TYPE shmem_g(shmem_ctx_t ctx, const TYPE* source, int pe) { return shmem_ctx_##NAME##_g(ctx, source, pe); }
UNISONO_SHMEM_BASIC(UNISONO_SHMEM_DEFINE)
#undef UNISONO_SHMEM_DEFINE

#define UNISONO_SHMEM_DEFINE(NAME, TYPE) \
  inline TYPE shmem_atomic_fetch(const TYPE* source, int pe) { return shmem_##NAME##_atomic_fetch(source, pe); } \
  inline TYPE shmem_atomic_fetch(shmem_ctx_t ctx, const TYPE* source, int pe) { return shmem_ctx_##NAME##_atomic_fetch(ctx, source, pe); } \
  inline void shmem_atomic_set(TYPE* dest, TYPE value, int pe) { shmem_##NAME##_atomic_set(dest, value, pe); } \
  inline void shmem_atomic_set(shmem_ctx_t ctx, TYPE* dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_set(ctx, dest, value, pe); } \
  inline TYPE shmem_atomic_swap(TYPE* dest, TYPE value, int pe) { return shmem_##NAME##_atomic_swap(dest, value, pe); } \
  inline TYPE shmem_atomic_swap(shmem_ctx_t ctx, TYPE* dest, TYPE value, int pe) { return shmem_ctx_##NAME##_atomic_swap(ctx, dest, value, pe); } \
  inline void shmem_atomic_fetch_nbi(TYPE* fetch, const TYPE* source, int pe) { shmem_##NAME##_atomic_fetch_nbi(fetch, source, pe); } \
  inline void shmem_atomic_fetch_nbi(shmem_ctx_t ctx, TYPE* fetch, const TYPE* source, int pe) { shmem_ctx_##NAME##_atomic_fetch_nbi(ctx, fetch, source, pe); } \
  inline void shmem_atomic_swap_nbi(TYPE* fetch, TYPE* dest, TYPE value, int pe) { shmem_##NAME##_atomic_swap_nbi(fetch, dest, value, pe); } \
  inline void shmem_atomic_swap_nbi(shmem_ctx_t ctx, TYPE* fetch, TYPE* dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_swap_nbi(ctx, fetch, dest, value, pe); }
UNISONO_SHMEM_AMO_BASIC(UNISONO_SHMEM_DEFINE)
UNISONO_SHMEM_AMO_REAL(UNISONO_SHMEM_DEFINE)
#undef UNISONO_SHMEM_DEFINE

#define UNISONO_SHMEM_DEFINE(NAME, TYPE) \
  inline TYPE shmem_atomic_compare_swap(TYPE* dest, TYPE cond, TYPE value, int pe) { return shmem_##NAME##_atomic_compare_swap(dest, cond, value, pe); } \
  inline TYPE shmem_atomic_compare_swap(shmem_ctx_t ctx, TYPE* dest, TYPE cond, TYPE value, int pe) { return shmem_ctx_##NAME##_atomic_compare_swap(ctx, dest, cond, value, pe); } \
  inline TYPE shmem_atomic_fetch_inc(TYPE* dest, int pe) { return shmem_##NAME##_atomic_fetch_inc(dest, pe); } \
  inline TYPE shmem_atomic_fetch_inc(shmem_ctx_t ctx, TYPE* dest, int pe) { return shmem_ctx_##NAME##_atomic_fetch_inc(ctx, dest, pe); } \
  inline void shmem_atomic_inc(TYPE* dest, int pe) { shmem_##NAME##_atomic_inc(dest, pe); } \
  inline void shmem_atomic_inc(shmem_ctx_t ctx, TYPE* dest, int pe) { shmem_ctx_##NAME##_atomic_inc(ctx, dest, pe); } \
  inline TYPE shmem_atomic_fetch_add(TYPE* dest, TYPE value, int pe) { return shmem_##NAME##_atomic_fetch_add(dest, value, pe); } \
  inline TYPE shmem_atomic_fetch_add(shmem_ctx_t ctx, TYPE* dest, TYPE value, int pe) { return shmem_ctx_##NAME##_atomic_fetch_add(ctx, dest, value, pe); } \
  inline void shmem_atomic_add(TYPE* dest, TYPE value, int pe) { shmem_##NAME##_atomic_add(dest, value, pe); } \
  inline void shmem_atomic_add(shmem_ctx_t ctx, TYPE* dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_add(ctx, dest, value, pe); } \
  inline void shmem_atomic_compare_swap_nbi(TYPE* fetch, TYPE* dest, TYPE cond, TYPE value, int pe) { shmem_##NAME##_atomic_compare_swap_nbi(fetch, dest, cond, value, pe); } \
  inline void shmem_atomic_compare_swap_nbi(shmem_ctx_t ctx, TYPE* fetch, TYPE* dest, TYPE cond, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_compare_swap_nbi(ctx, fetch, dest, cond, value, pe); } \
  inline void shmem_atomic_fetch_inc_nbi(TYPE* fetch, TYPE* dest, int pe) { shmem_##NAME##_atomic_fetch_inc_nbi(fetch, dest, pe); } \
  inline void shmem_atomic_fetch_inc_nbi(shmem_ctx_t ctx, TYPE* fetch, TYPE* dest, int pe) { shmem_ctx_##NAME##_atomic_fetch_inc_nbi(ctx, fetch, dest, pe); } \
  inline void shmem_atomic_fetch_add_nbi(TYPE* fetch, TYPE* dest, TYPE value, int pe) { shmem_##NAME##_atomic_fetch_add_nbi(fetch, dest, value, pe); } \
  inline void shmem_atomic_fetch_add_nbi(shmem_ctx_t ctx, TYPE* fetch, TYPE* dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_fetch_add_nbi(ctx, fetch, dest, value, pe); }
UNISONO_SHMEM_AMO_BASIC(UNISONO_SHMEM_DEFINE)
#undef UNISONO_SHMEM_DEFINE

#define UNISONO_SHMEM_DEFINE(NAME, TYPE) \
  inline TYPE shmem_atomic_fetch_and(TYPE* dest, TYPE value, int pe) { return shmem_##NAME##_atomic_fetch_and(dest, value, pe); } \
  inline TYPE shmem_atomic_fetch_and(shmem_ctx_t ctx, TYPE* dest, TYPE value, int pe) { return shmem_ctx_##NAME##_atomic_fetch_and(ctx, dest, value, pe); } \
  inline void shmem_atomic_and(TYPE* dest, TYPE value, int pe) { shmem_##NAME##_atomic_and(dest, value, pe); } \
  inline void shmem_atomic_and(shmem_ctx_t ctx, TYPE* dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_and(ctx, dest, value, pe); } \
  inline TYPE shmem_atomic_fetch_or(TYPE* dest, TYPE value, int pe) { return shmem_##NAME##_atomic_fetch_or(dest, value, pe); } \
  inline TYPE shmem_atomic_fetch_or(shmem_ctx_t ctx, TYPE* dest, TYPE value, int pe) { return shmem_ctx_##NAME##_atomic_fetch_or(ctx, dest, value, pe); } \
  inline void shmem_atomic_or(TYPE* dest, TYPE value, int pe) { shmem_##NAME##_atomic_or(dest, value, pe); } \
  inline void shmem_atomic_or(shmem_ctx_t ctx, TYPE* dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_or(ctx, dest, value, pe); } \
  inline TYPE shmem_atomic_fetch_xor(TYPE* dest, TYPE value, int pe) { return shmem_##NAME##_atomic_fetch_xor(dest, value, pe); } \
  inline TYPE shmem_atomic_fetch_xor(shmem_ctx_t ctx, TYPE* dest, TYPE value, int pe) { return shmem_ctx_##NAME##_atomic_fetch_xor(ctx, dest, value, pe); } \
  inline void shmem_atomic_xor(TYPE* dest, TYPE value, int pe) { shmem_##NAME##_atomic_xor(dest, value, pe); } \
  inline void shmem_atomic_xor(shmem_ctx_t ctx, TYPE* dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_xor(ctx, dest, value, pe); } \
  inline void shmem_atomic_fetch_and_nbi(TYPE* fetch, TYPE* dest, TYPE value, int pe) { shmem_##NAME##_atomic_fetch_and_nbi(fetch, dest, value, pe); } \
  inline void shmem_atomic_fetch_and_nbi(shmem_ctx_t ctx, TYPE* fetch, TYPE* dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_fetch_and_nbi(ctx, fetch, dest, value, pe); } \
  inline void shmem_atomic_fetch_or_nbi(TYPE* fetch, TYPE* dest, TYPE value, int pe) { shmem_##NAME##_atomic_fetch_or_nbi(fetch, dest, value, pe); } \
  inline void shmem_atomic_fetch_or_nbi(shmem_ctx_t ctx, TYPE* fetch, TYPE* dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_fetch_or_nbi(ctx, fetch, dest, value, pe); } \
  inline void shmem_atomic_fetch_xor_nbi(TYPE* fetch, TYPE* dest, TYPE value, int pe) { shmem_##NAME##_atomic_fetch_xor_nbi(fetch, dest, value, pe); } \
  inline void shmem_atomic_fetch_xor_nbi(shmem_ctx_t ctx, TYPE* fetch, TYPE* dest, TYPE value, int pe) { shmem_ctx_##NAME##_atomic_fetch_xor_nbi(ctx, fetch, dest, value, pe); }
UNISONO_SHMEM_WIDE_UNSIGNED(UNISONO_SHMEM_DEFINE)
UNISONO_SHMEM_DEFINE(int32, int32_t)
UNISONO_SHMEM_DEFINE(int64, int64_t)
#undef UNISONO_SHMEM_DEFINE

#define UNISONO_SHMEM_DEFINE(NAME, TYPE) \
  inline void shmem_wait_until(TYPE* ivar, int cmp, TYPE value) { shmem_##NAME##_wait_until(ivar, cmp, value); } \
  inline int shmem_test(TYPE* ivar, int cmp, TYPE value) { return shmem_##NAME##_test(ivar, cmp, value); } \
  inline void shmem_wait_until_all(TYPE* ivars, size_t count, const int* status, int cmp, TYPE value) { shmem_##NAME##_wait_until_all(ivars, count, status, cmp, value); } \
  inline size_t shmem_wait_until_any(TYPE* ivars, size_t count, const int* status, int cmp, TYPE value) { return shmem_##NAME##_wait_until_any(ivars, count, status, cmp, value); } \
  inline size_t shmem_wait_until_some(TYPE* ivars, size_t count, size_t* indices, const int* status, int cmp, TYPE value) { return shmem_##NAME##_wait_until_some(ivars, count, indices, status, cmp, value); } \
  inline int shmem_test_all(TYPE* ivars, size_t count, const int* status, int cmp, TYPE value) { return shmem_##NAME##_test_all(ivars, count, status, cmp, value); } \
  inline size_t shmem_test_any(TYPE* ivars, size_t count, const int* status, int cmp, TYPE value) { return shmem_##NAME##_test_any(ivars, count, status, cmp, value); } \
  inline size_t shmem_test_some(TYPE* ivars, size_t count, size_t* indices, const int* status, int cmp, TYPE value) { return shmem_##NAME##_test_some(ivars, count, indices, status, cmp, value); }
UNISONO_SHMEM_SYNC_BASIC(UNISONO_SHMEM_DEFINE)
#undef UNISONO_SHMEM_DEFINE

#define UNISONO_SHMEM_DEFINE(NAME, TYPE) \
  inline int shmem_broadcast(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count, int root) { return shmem_##NAME##_broadcast(team, dest, source, count, root); } \
  inline int shmem_collect(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { return shmem_##NAME##_collect(team, dest, source, count); } \
  inline int shmem_fcollect(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { return shmem_##NAME##_fcollect(team, dest, source, count); } \
  inline int shmem_alltoall(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { return shmem_##NAME##_alltoall(team, dest, source, count); } \
  inline int shmem_max_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { return shmem_##NAME##_max_reduce(team, dest, source, count); } \
  inline int shmem_min_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { return shmem_##NAME##_min_reduce(team, dest, source, count); } \
  inline int shmem_sum_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { return shmem_##NAME##_sum_reduce(team, dest, source, count); } \
  inline int shmem_prod_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { return shmem_##NAME##_prod_reduce(team, dest, source, count); }
UNISONO_SHMEM_BASIC(UNISONO_SHMEM_DEFINE)
#undef UNISONO_SHMEM_DEFINE

#define UNISONO_SHMEM_DEFINE(NAME, TYPE) \
  inline int shmem_and_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { return shmem_##NAME##_and_reduce(team, dest, source, count); } \
  inline int shmem_or_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { return shmem_##NAME##_or_reduce(team, dest, source, count); } \
  inline int shmem_xor_reduce(shmem_team_t team, TYPE* dest, const TYPE* source, size_t count) { return shmem_##NAME##_xor_reduce(team, dest, source, count); }
UNISONO_SHMEM_WIDE_UNSIGNED(UNISONO_SHMEM_DEFINE)
UNISONO_SHMEM_DEFINE(uchar, unsigned char)
UNISONO_SHMEM_DEFINE(ushort, unsigned short)
UNISONO_SHMEM_DEFINE(int8, int8_t)
UNISONO_SHMEM_DEFINE(int16, int16_t)
UNISONO_SHMEM_DEFINE(int32, int32_t)
UNISONO_SHMEM_DEFINE(int64, int64_t)
#undef UNISONO_SHMEM_DEFINE

/* clang-format on */

#endif

#endif
