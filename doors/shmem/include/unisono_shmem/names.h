/* The names of all functions of shmem.h, as lists: UNISONO_SHMEM_NAMES_... is UNISONO_SHMEM_NAME(N) for each function
 * shmem_N of a group. Whoever expands a list defines UNISONO_SHMEM_NAME before: pshmem.h to declare pshmem_N, the
 * library to make it another name of shmem_N. A list has what one of the library's files defines. Programs need none of
 * this. */
#ifndef UNISONO_SHMEM_NAMES_H
#define UNISONO_SHMEM_NAMES_H

#include "lists.h"

/* clang-format off */
#define UNISONO_SHMEM_NAME_BOTH(N) UNISONO_SHMEM_NAME(N) UNISONO_SHMEM_NAME(ctx_##N)

/* Beginning and end, memory, order, contexts. */
#define UNISONO_SHMEM_NAMES_SETUP                                                                                   \
  UNISONO_SHMEM_NAME(init) UNISONO_SHMEM_NAME(init_thread) UNISONO_SHMEM_NAME(query_thread)                         \
  UNISONO_SHMEM_NAME(finalize) UNISONO_SHMEM_NAME(global_exit) UNISONO_SHMEM_NAME(pcontrol)                         \
  UNISONO_SHMEM_NAME(my_pe) UNISONO_SHMEM_NAME(n_pes) UNISONO_SHMEM_NAME(pe_accessible)                             \
  UNISONO_SHMEM_NAME(addr_accessible) UNISONO_SHMEM_NAME(ptr) UNISONO_SHMEM_NAME(team_ptr)                          \
  UNISONO_SHMEM_NAME(info_get_version) UNISONO_SHMEM_NAME(info_get_name)                                            \
  UNISONO_SHMEM_NAME(malloc) UNISONO_SHMEM_NAME(malloc_with_hints) UNISONO_SHMEM_NAME(calloc)                       \
  UNISONO_SHMEM_NAME(align) UNISONO_SHMEM_NAME(realloc) UNISONO_SHMEM_NAME(free)                                    \
  UNISONO_SHMEM_NAME_BOTH(fence) UNISONO_SHMEM_NAME_BOTH(quiet)                                                     \
  UNISONO_SHMEM_NAME(barrier_all) UNISONO_SHMEM_NAME(sync_all)                                                      \
  UNISONO_SHMEM_NAME(ctx_create) UNISONO_SHMEM_NAME(team_create_ctx) UNISONO_SHMEM_NAME(ctx_get_team)               \
  UNISONO_SHMEM_NAME(ctx_destroy)

/* Put and get. */
#define UNISONO_SHMEM_NAMES_OF_RMA(N, TYPE)                                                                         \
  UNISONO_SHMEM_NAME_BOTH(N##_put) UNISONO_SHMEM_NAME_BOTH(N##_put_nbi)                                             \
  UNISONO_SHMEM_NAME_BOTH(N##_get) UNISONO_SHMEM_NAME_BOTH(N##_get_nbi)                                             \
  UNISONO_SHMEM_NAME_BOTH(N##_p) UNISONO_SHMEM_NAME_BOTH(N##_g)                                                     \
  UNISONO_SHMEM_NAME_BOTH(N##_iput) UNISONO_SHMEM_NAME_BOTH(N##_iget)                                               \
  UNISONO_SHMEM_NAME_BOTH(N##_put_signal) UNISONO_SHMEM_NAME_BOTH(N##_put_signal_nbi)
#define UNISONO_SHMEM_NAMES_OF_WIDTH(N, BYTES)                                                                      \
  UNISONO_SHMEM_NAME_BOTH(put##N) UNISONO_SHMEM_NAME_BOTH(put##N##_nbi)                                             \
  UNISONO_SHMEM_NAME_BOTH(get##N) UNISONO_SHMEM_NAME_BOTH(get##N##_nbi)                                             \
  UNISONO_SHMEM_NAME_BOTH(put##N##_signal) UNISONO_SHMEM_NAME_BOTH(put##N##_signal_nbi)
#define UNISONO_SHMEM_NAMES_OF_STEPS(N, BYTES) UNISONO_SHMEM_NAME_BOTH(iput##N) UNISONO_SHMEM_NAME_BOTH(iget##N)
#define UNISONO_SHMEM_NAMES_ACCESS                                                                                  \
  UNISONO_SHMEM_RMA_TYPES(UNISONO_SHMEM_NAMES_OF_RMA)                                                               \
  UNISONO_SHMEM_RMA_SIZES(UNISONO_SHMEM_NAMES_OF_WIDTH) UNISONO_SHMEM_NAMES_OF_WIDTH(mem, 1)                        \
  UNISONO_SHMEM_RMA_SIZES(UNISONO_SHMEM_NAMES_OF_STEPS)

/* Atomics and locks. */
#define UNISONO_SHMEM_NAMES_OF_READS(N, TYPE)                                                                       \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_fetch) UNISONO_SHMEM_NAME_BOTH(N##_atomic_fetch_nbi)                           \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_set)                                                                           \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_swap) UNISONO_SHMEM_NAME_BOTH(N##_atomic_swap_nbi)
#define UNISONO_SHMEM_NAMES_OF_COUNTS(N, TYPE)                                                                      \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_compare_swap) UNISONO_SHMEM_NAME_BOTH(N##_atomic_compare_swap_nbi)             \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_fetch_inc) UNISONO_SHMEM_NAME_BOTH(N##_atomic_fetch_inc_nbi)                   \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_inc)                                                                           \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_fetch_add) UNISONO_SHMEM_NAME_BOTH(N##_atomic_fetch_add_nbi)                   \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_add)
#define UNISONO_SHMEM_NAMES_OF_BITS(N, TYPE)                                                                        \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_fetch_and) UNISONO_SHMEM_NAME_BOTH(N##_atomic_fetch_and_nbi)                   \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_and)                                                                           \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_fetch_or) UNISONO_SHMEM_NAME_BOTH(N##_atomic_fetch_or_nbi)                     \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_or)                                                                            \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_fetch_xor) UNISONO_SHMEM_NAME_BOTH(N##_atomic_fetch_xor_nbi)                   \
  UNISONO_SHMEM_NAME_BOTH(N##_atomic_xor)
#define UNISONO_SHMEM_NAMES_OF_OLD_READS(N, TYPE)                                                                   \
  UNISONO_SHMEM_NAME(N##_fetch) UNISONO_SHMEM_NAME(N##_set) UNISONO_SHMEM_NAME(N##_swap)
#define UNISONO_SHMEM_NAMES_OF_OLD_COUNTS(N, TYPE)                                                                  \
  UNISONO_SHMEM_NAME(N##_cswap) UNISONO_SHMEM_NAME(N##_finc) UNISONO_SHMEM_NAME(N##_inc)                            \
  UNISONO_SHMEM_NAME(N##_fadd) UNISONO_SHMEM_NAME(N##_add)
#define UNISONO_SHMEM_NAMES_ATOMICS                                                                                 \
  UNISONO_SHMEM_AMO_TYPES(UNISONO_SHMEM_NAMES_OF_READS) UNISONO_SHMEM_AMO_REAL(UNISONO_SHMEM_NAMES_OF_READS)        \
  UNISONO_SHMEM_AMO_TYPES(UNISONO_SHMEM_NAMES_OF_COUNTS) UNISONO_SHMEM_AMO_BITS(UNISONO_SHMEM_NAMES_OF_BITS)        \
  UNISONO_SHMEM_WIDE_SIGNED(UNISONO_SHMEM_NAMES_OF_OLD_READS)                                                       \
  UNISONO_SHMEM_AMO_REAL(UNISONO_SHMEM_NAMES_OF_OLD_READS)                                                          \
  UNISONO_SHMEM_WIDE_SIGNED(UNISONO_SHMEM_NAMES_OF_OLD_COUNTS)                                                      \
  UNISONO_SHMEM_NAME(signal_fetch)                                                                                  \
  UNISONO_SHMEM_NAME(set_lock) UNISONO_SHMEM_NAME(test_lock) UNISONO_SHMEM_NAME(clear_lock)

/* Waits and tests. */
#define UNISONO_SHMEM_NAMES_OF_WAITS(N, TYPE)                                                                       \
  UNISONO_SHMEM_NAME(N##_wait_until) UNISONO_SHMEM_NAME(N##_wait_until_all) UNISONO_SHMEM_NAME(N##_wait_until_any)  \
  UNISONO_SHMEM_NAME(N##_wait_until_some) UNISONO_SHMEM_NAME(N##_wait_until_all_vector)                             \
  UNISONO_SHMEM_NAME(N##_wait_until_any_vector) UNISONO_SHMEM_NAME(N##_wait_until_some_vector)                      \
  UNISONO_SHMEM_NAME(N##_test) UNISONO_SHMEM_NAME(N##_test_all) UNISONO_SHMEM_NAME(N##_test_any)                    \
  UNISONO_SHMEM_NAME(N##_test_some) UNISONO_SHMEM_NAME(N##_test_all_vector)                                         \
  UNISONO_SHMEM_NAME(N##_test_any_vector) UNISONO_SHMEM_NAME(N##_test_some_vector)
#define UNISONO_SHMEM_NAMES_OF_OLD_WAITS(N, TYPE) UNISONO_SHMEM_NAME(N##_wait)
#define UNISONO_SHMEM_NAMES_WAITS                                                                                   \
  UNISONO_SHMEM_SYNC_TYPES(UNISONO_SHMEM_NAMES_OF_WAITS) UNISONO_SHMEM_NAME(signal_wait_until)                     \
  UNISONO_SHMEM_OLD_BIT_TYPES(UNISONO_SHMEM_NAMES_OF_OLD_WAITS) UNISONO_SHMEM_NAME(wait)

/* Teams. */
#define UNISONO_SHMEM_NAMES_TEAMS                                                                                   \
  UNISONO_SHMEM_NAME(team_my_pe) UNISONO_SHMEM_NAME(team_n_pes) UNISONO_SHMEM_NAME(team_get_config)                 \
  UNISONO_SHMEM_NAME(team_translate_pe) UNISONO_SHMEM_NAME(team_split_strided) UNISONO_SHMEM_NAME(team_split_2d)    \
  UNISONO_SHMEM_NAME(team_destroy) UNISONO_SHMEM_NAME(team_sync)

/* Collectives: of teams, and of active sets. */
#define UNISONO_SHMEM_NAMES_OF_MOVES(N, TYPE)                                                                       \
  UNISONO_SHMEM_NAME(N##_broadcast) UNISONO_SHMEM_NAME(N##_collect) UNISONO_SHMEM_NAME(N##_fcollect)                \
  UNISONO_SHMEM_NAME(N##_alltoall) UNISONO_SHMEM_NAME(N##_alltoalls)
#define UNISONO_SHMEM_NAMES_OF_BIT_REDUCES(N, TYPE)                                                                 \
  UNISONO_SHMEM_NAME(N##_and_reduce) UNISONO_SHMEM_NAME(N##_or_reduce) UNISONO_SHMEM_NAME(N##_xor_reduce)
#define UNISONO_SHMEM_NAMES_OF_ORDER_REDUCES(N, TYPE)                                                               \
  UNISONO_SHMEM_NAME(N##_max_reduce) UNISONO_SHMEM_NAME(N##_min_reduce)
#define UNISONO_SHMEM_NAMES_OF_SUM_REDUCES(N, TYPE)                                                                 \
  UNISONO_SHMEM_NAME(N##_sum_reduce) UNISONO_SHMEM_NAME(N##_prod_reduce)
#define UNISONO_SHMEM_NAMES_OF_OLD_BIT_REDUCES(N, TYPE)                                                             \
  UNISONO_SHMEM_NAME(N##_and_to_all) UNISONO_SHMEM_NAME(N##_or_to_all) UNISONO_SHMEM_NAME(N##_xor_to_all)
#define UNISONO_SHMEM_NAMES_OF_OLD_ORDER_REDUCES(N, TYPE)                                                           \
  UNISONO_SHMEM_NAME(N##_max_to_all) UNISONO_SHMEM_NAME(N##_min_to_all)
#define UNISONO_SHMEM_NAMES_OF_OLD_SUM_REDUCES(N, TYPE)                                                             \
  UNISONO_SHMEM_NAME(N##_sum_to_all) UNISONO_SHMEM_NAME(N##_prod_to_all)
#define UNISONO_SHMEM_NAMES_OF_UNTYPED(WIDTH)                                                                       \
  UNISONO_SHMEM_NAME(broadcast##WIDTH) UNISONO_SHMEM_NAME(collect##WIDTH) UNISONO_SHMEM_NAME(fcollect##WIDTH)       \
  UNISONO_SHMEM_NAME(alltoall##WIDTH) UNISONO_SHMEM_NAME(alltoalls##WIDTH)
#define UNISONO_SHMEM_NAMES_COLLECTIVES                                                                             \
  UNISONO_SHMEM_RMA_TYPES(UNISONO_SHMEM_NAMES_OF_MOVES)                                                             \
  UNISONO_SHMEM_BIT_TYPES(UNISONO_SHMEM_NAMES_OF_BIT_REDUCES)                                                       \
  UNISONO_SHMEM_ORDER_TYPES(UNISONO_SHMEM_NAMES_OF_ORDER_REDUCES)                                                   \
  UNISONO_SHMEM_SUM_TYPES(UNISONO_SHMEM_NAMES_OF_SUM_REDUCES)                                                       \
  UNISONO_SHMEM_OLD_BIT_TYPES(UNISONO_SHMEM_NAMES_OF_OLD_BIT_REDUCES)                                               \
  UNISONO_SHMEM_OLD_ORDER_TYPES(UNISONO_SHMEM_NAMES_OF_OLD_ORDER_REDUCES)                                           \
  UNISONO_SHMEM_OLD_SUM_TYPES(UNISONO_SHMEM_NAMES_OF_OLD_SUM_REDUCES)                                               \
  UNISONO_SHMEM_NAMES_OF_UNTYPED(mem) UNISONO_SHMEM_NAMES_OF_UNTYPED(32) UNISONO_SHMEM_NAMES_OF_UNTYPED(64)         \
  UNISONO_SHMEM_NAME(barrier) UNISONO_SHMEM_NAME(sync)
/* clang-format on */

#endif
