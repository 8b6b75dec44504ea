/* The forms of C11 without a type in their names: shmem_put, shmem_atomic_add, shmem_sum_reduce and so on choose by the
 * type of their pointers, with or without a context in front. Included by shmem.h; C++ has overloads instead. */
#ifndef UNISONO_SHMEM_GENERIC_H
#define UNISONO_SHMEM_GENERIC_H

#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L

/* clang-format off */
/* Lists of types of which no two are the same: X(NAME, TYPE, F) for each. */
#define UNISONO_SHMEM_EACH_SIGNED(X, F) X(int, int, F) X(long, long, F) X(longlong, long long, F)
#define UNISONO_SHMEM_EACH_UNSIGNED(X, F) \
  X(uint, unsigned int, F) X(ulong, unsigned long, F) X(ulonglong, unsigned long long, F)
#define UNISONO_SHMEM_EACH_AMO(X, F) UNISONO_SHMEM_EACH_SIGNED(X, F) UNISONO_SHMEM_EACH_UNSIGNED(X, F)
/* Of the signed types those that have a width in their names. */
#define UNISONO_SHMEM_EACH_BITS(X, F) \
  X(int32, int32_t, F) X(int64, int64_t, F) UNISONO_SHMEM_EACH_UNSIGNED(X, F)
#define UNISONO_SHMEM_EACH_RW(X, F) X(float, float, F) X(double, double, F) UNISONO_SHMEM_EACH_AMO(X, F)
#define UNISONO_SHMEM_EACH_SYNC(X, F) X(short, short, F) X(ushort, unsigned short, F) UNISONO_SHMEM_EACH_AMO(X, F)
#define UNISONO_SHMEM_EACH_RMA(X, F)                                                          \
  X(float, float, F)                                                                          \
  X(double, double, F)                                                                        \
  X(longdouble, long double, F) X(char, char, F) X(schar, signed char, F) X(short, short, F)  \
      UNISONO_SHMEM_EACH_SIGNED(X, F) X(uchar, unsigned char, F) X(ushort, unsigned short, F) \
          UNISONO_SHMEM_EACH_UNSIGNED(X, F)
#define UNISONO_SHMEM_EACH_SUM(X, F) \
  X(complexf, float _Complex, F) X(complexd, double _Complex, F) UNISONO_SHMEM_EACH_RMA(X, F)
#define UNISONO_SHMEM_EACH_INTEGER(X, F)                        \
  X(int8, int8_t, F) X(int16, int16_t, F) X(uchar, unsigned char, F) \
      X(ushort, unsigned short, F) UNISONO_SHMEM_EACH_BITS(X, F)
/* clang-format on */

/* What is chosen where no type fits: a function without arguments, so that the call does not compile. */
void unisono_shmem_takes_no_such_type(void);

#define UNISONO_SHMEM_CASE(NAME, TYPE, F) TYPE* : shmem_##NAME##_##F, const TYPE* : shmem_##NAME##_##F,
#define UNISONO_SHMEM_CASE_CTX(NAME, TYPE, F) TYPE* : shmem_ctx_##NAME##_##F, const TYPE* : shmem_ctx_##NAME##_##F,
#define UNISONO_SHMEM_FIRST(A, ...) A
/* By the first argument, or by the second if the first is a context. */
#define UNISONO_SHMEM_CHOOSE(EACH, F, A, ...)                                                        \
  _Generic((A), EACH(UNISONO_SHMEM_CASE, F) shmem_ctx_t                                              \
           : _Generic((UNISONO_SHMEM_FIRST(__VA_ARGS__, 0)), EACH(UNISONO_SHMEM_CASE_CTX, F) default \
                      : unisono_shmem_takes_no_such_type),                                           \
             default                                                                                 \
           : unisono_shmem_takes_no_such_type)(A, __VA_ARGS__)
#define UNISONO_SHMEM_CHOOSE_PLAIN(EACH, F, A, ...) \
  _Generic((A), EACH(UNISONO_SHMEM_CASE, F) default : unisono_shmem_takes_no_such_type)(A, __VA_ARGS__)
/* Of a team: by the second argument. */
#define UNISONO_SHMEM_CHOOSE_TEAM(EACH, F, TEAM, A, ...) \
  _Generic((A), EACH(UNISONO_SHMEM_CASE, F) default : unisono_shmem_takes_no_such_type)(TEAM, A, __VA_ARGS__)

#define shmem_put(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RMA, put, __VA_ARGS__)
#define shmem_get(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RMA, get, __VA_ARGS__)
#define shmem_put_nbi(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RMA, put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RMA, get_nbi, __VA_ARGS__)
#define shmem_iput(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RMA, iput, __VA_ARGS__)
#define shmem_iget(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RMA, iget, __VA_ARGS__)
#define shmem_put_signal(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RMA, put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RMA, put_signal_nbi, __VA_ARGS__)
#define shmem_p(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RMA, p, __VA_ARGS__)
#define shmem_g(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RMA, g, __VA_ARGS__)

#define shmem_atomic_fetch(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RW, atomic_fetch, __VA_ARGS__)
#define shmem_atomic_set(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RW, atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RW, atomic_swap, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RW, atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_RW, atomic_swap_nbi, __VA_ARGS__)

#define shmem_atomic_compare_swap(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_AMO, atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) \
  UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_AMO, atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_AMO, atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_AMO, atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_inc(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_AMO, atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_AMO, atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_AMO, atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_add(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_AMO, atomic_add, __VA_ARGS__)

#define shmem_atomic_fetch_and(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_BITS, atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_BITS, atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_and(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_BITS, atomic_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_BITS, atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_BITS, atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_or(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_BITS, atomic_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_BITS, atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_BITS, atomic_fetch_xor_nbi, __VA_ARGS__)
#define shmem_atomic_xor(...) UNISONO_SHMEM_CHOOSE(UNISONO_SHMEM_EACH_BITS, atomic_xor, __VA_ARGS__)

#define shmem_wait_until(...) UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, wait_until, __VA_ARGS__)
#define shmem_test(...) UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, test, __VA_ARGS__)
#define shmem_wait_until_all(...) UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, wait_until_all, __VA_ARGS__)
#define shmem_wait_until_all_vector(...) \
  UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any(...) UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, wait_until_any, __VA_ARGS__)
#define shmem_wait_until_any_vector(...) \
  UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some(...) UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, wait_until_some, __VA_ARGS__)
#define shmem_wait_until_some_vector(...) \
  UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, wait_until_some_vector, __VA_ARGS__)
#define shmem_test_all(...) UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, test_all, __VA_ARGS__)
#define shmem_test_all_vector(...) UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, test_all_vector, __VA_ARGS__)
#define shmem_test_any(...) UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, test_any, __VA_ARGS__)
#define shmem_test_any_vector(...) UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, test_any_vector, __VA_ARGS__)
#define shmem_test_some(...) UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, test_some, __VA_ARGS__)
#define shmem_test_some_vector(...) UNISONO_SHMEM_CHOOSE_PLAIN(UNISONO_SHMEM_EACH_SYNC, test_some_vector, __VA_ARGS__)

/* shmem_sync(team), beside shmem_sync(start, log_stride, size, sync) of active sets. */
#define UNISONO_SHMEM_FIFTH(A, B, C, D, E, ...) E
#define shmem_sync(...) \
  UNISONO_SHMEM_FIFTH(__VA_ARGS__, shmem_sync, shmem_sync, shmem_sync, shmem_team_sync, )(__VA_ARGS__)

#define shmem_broadcast(...) UNISONO_SHMEM_CHOOSE_TEAM(UNISONO_SHMEM_EACH_RMA, broadcast, __VA_ARGS__)
#define shmem_collect(...) UNISONO_SHMEM_CHOOSE_TEAM(UNISONO_SHMEM_EACH_RMA, collect, __VA_ARGS__)
#define shmem_fcollect(...) UNISONO_SHMEM_CHOOSE_TEAM(UNISONO_SHMEM_EACH_RMA, fcollect, __VA_ARGS__)
#define shmem_alltoall(...) UNISONO_SHMEM_CHOOSE_TEAM(UNISONO_SHMEM_EACH_RMA, alltoall, __VA_ARGS__)
#define shmem_alltoalls(...) UNISONO_SHMEM_CHOOSE_TEAM(UNISONO_SHMEM_EACH_RMA, alltoalls, __VA_ARGS__)

#define shmem_and_reduce(...) UNISONO_SHMEM_CHOOSE_TEAM(UNISONO_SHMEM_EACH_INTEGER, and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...) UNISONO_SHMEM_CHOOSE_TEAM(UNISONO_SHMEM_EACH_INTEGER, or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...) UNISONO_SHMEM_CHOOSE_TEAM(UNISONO_SHMEM_EACH_INTEGER, xor_reduce, __VA_ARGS__)

#define shmem_max_reduce(...) UNISONO_SHMEM_CHOOSE_TEAM(UNISONO_SHMEM_EACH_RMA, max_reduce, __VA_ARGS__)
#define shmem_min_reduce(...) UNISONO_SHMEM_CHOOSE_TEAM(UNISONO_SHMEM_EACH_RMA, min_reduce, __VA_ARGS__)

#define shmem_sum_reduce(...) UNISONO_SHMEM_CHOOSE_TEAM(UNISONO_SHMEM_EACH_SUM, sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) UNISONO_SHMEM_CHOOSE_TEAM(UNISONO_SHMEM_EACH_SUM, prod_reduce, __VA_ARGS__)

#endif

#endif
