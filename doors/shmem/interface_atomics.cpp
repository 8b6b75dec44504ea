// The atomics, signals and locks of shmem.h.
#include "doors/shmem/access.hpp"
#include "doors/shmem/interface.hpp"
#include "doors/shmem/patience.hpp"

using namespace unisono::shmem;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

// NOLINTBEGIN(bugprone-macro-parentheses): names and types cannot stand in parentheses
extern "C" {

#define DEFINE(P, C, PE, NAME, TYPE)                                                                                 \
  TYPE shmem_##P##NAME##_atomic_fetch(C const TYPE* source, int pe) {                                                \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_fetch");                                                          \
    return guarded(                                                                                                  \
        [&] { return atomic(kOperation, Atomic::kFetch, source, static_cast<TYPE>(0), static_cast<TYPE>(0), PE); }); \
  }                                                                                                                  \
  void shmem_##P##NAME##_atomic_set(C TYPE* dest, TYPE value, int pe) {                                              \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_set");                                                            \
    guarded([&] { atomic(kOperation, Atomic::kSet, dest, value, static_cast<TYPE>(0), PE, false); });                \
  }                                                                                                                  \
  TYPE shmem_##P##NAME##_atomic_swap(C TYPE* dest, TYPE value, int pe) {                                             \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_swap");                                                           \
    return guarded([&] { return atomic(kOperation, Atomic::kSwap, dest, value, static_cast<TYPE>(0), PE); });        \
  }                                                                                                                  \
  void shmem_##P##NAME##_atomic_fetch_nbi(C TYPE* fetch, const TYPE* source, int pe) {                               \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_fetch_nbi");                                                      \
    *fetch = guarded(                                                                                                \
        [&] { return atomic(kOperation, Atomic::kFetch, source, static_cast<TYPE>(0), static_cast<TYPE>(0), PE); }); \
  }                                                                                                                  \
  void shmem_##P##NAME##_atomic_swap_nbi(C TYPE* fetch, TYPE* dest, TYPE value, int pe) {                            \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_swap_nbi");                                                       \
    *fetch = guarded([&] { return atomic(kOperation, Atomic::kSwap, dest, value, static_cast<TYPE>(0), PE); });      \
  }
UNISONO_SHMEM_AMO_TYPES(UNISONO_SHMEM_BOTH)
UNISONO_SHMEM_AMO_REAL(UNISONO_SHMEM_BOTH)
#undef DEFINE

#define DEFINE(P, C, PE, NAME, TYPE)                                                                                 \
  TYPE shmem_##P##NAME##_atomic_compare_swap(C TYPE* dest, TYPE cond, TYPE value, int pe) {                          \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_compare_swap");                                                   \
    return guarded([&] { return atomic(kOperation, Atomic::kCompareSwap, dest, value, cond, PE); });                 \
  }                                                                                                                  \
  void shmem_##P##NAME##_atomic_compare_swap_nbi(C TYPE* fetch, TYPE* dest, TYPE cond, TYPE value, int pe) {         \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_compare_swap_nbi");                                               \
    *fetch = guarded([&] { return atomic(kOperation, Atomic::kCompareSwap, dest, value, cond, PE); });               \
  }                                                                                                                  \
  TYPE shmem_##P##NAME##_atomic_fetch_inc(C TYPE* dest, int pe) {                                                    \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_fetch_inc");                                                      \
    return guarded(                                                                                                  \
        [&] { return atomic(kOperation, Atomic::kAdd, dest, static_cast<TYPE>(1), static_cast<TYPE>(0), PE); });     \
  }                                                                                                                  \
  void shmem_##P##NAME##_atomic_fetch_inc_nbi(C TYPE* fetch, TYPE* dest, int pe) {                                   \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_fetch_inc_nbi");                                                  \
    *fetch = guarded(                                                                                                \
        [&] { return atomic(kOperation, Atomic::kAdd, dest, static_cast<TYPE>(1), static_cast<TYPE>(0), PE); });     \
  }                                                                                                                  \
  void shmem_##P##NAME##_atomic_inc(C TYPE* dest, int pe) {                                                          \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_inc");                                                            \
    guarded([&] { atomic(kOperation, Atomic::kAdd, dest, static_cast<TYPE>(1), static_cast<TYPE>(0), PE, false); }); \
  }
UNISONO_SHMEM_AMO_TYPES(UNISONO_SHMEM_BOTH)
#undef DEFINE

// An operation with its three forms.
#define UNISONO_SHMEM_DEFINE_FETCHING(P, C, PE, NAME, TYPE, OP, WHAT)                                  \
  TYPE shmem_##P##NAME##_atomic_fetch_##OP(C TYPE* dest, TYPE value, int pe) {                         \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_fetch_" #OP);                                       \
    return guarded([&] { return atomic(kOperation, WHAT, dest, value, static_cast<TYPE>(0), PE); });   \
  }                                                                                                    \
  void shmem_##P##NAME##_atomic_fetch_##OP##_nbi(C TYPE* fetch, TYPE* dest, TYPE value, int pe) {      \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_fetch_" #OP "_nbi");                                \
    *fetch = guarded([&] { return atomic(kOperation, WHAT, dest, value, static_cast<TYPE>(0), PE); }); \
  }                                                                                                    \
  void shmem_##P##NAME##_atomic_##OP(C TYPE* dest, TYPE value, int pe) {                               \
    UNISONO_SHMEM_NAMED("shmem_" #P #NAME "_atomic_" #OP);                                             \
    guarded([&] { atomic(kOperation, WHAT, dest, value, static_cast<TYPE>(0), PE, false); });          \
  }
// Rows of the tables, in both forms.
#define UNISONO_SHMEM_FETCHING(NAME, TYPE, OP, WHAT)          \
  UNISONO_SHMEM_DEFINE_FETCHING(, , pe, NAME, TYPE, OP, WHAT) \
  UNISONO_SHMEM_DEFINE_FETCHING(ctx_, UNISONO_SHMEM_ON_CTX, pe_of(kOperation, ctx, pe), NAME, TYPE, OP, WHAT)
#define ADD(NAME, TYPE) UNISONO_SHMEM_FETCHING(NAME, TYPE, add, Atomic::kAdd)
#define AND(NAME, TYPE) UNISONO_SHMEM_FETCHING(NAME, TYPE, and, Atomic::kAnd)
#define OR(NAME, TYPE) UNISONO_SHMEM_FETCHING(NAME, TYPE, or, Atomic::kOr)
#define XOR(NAME, TYPE) UNISONO_SHMEM_FETCHING(NAME, TYPE, xor, Atomic::kXor)
UNISONO_SHMEM_AMO_TYPES(ADD)
UNISONO_SHMEM_AMO_BITS(AND)
UNISONO_SHMEM_AMO_BITS(OR)
UNISONO_SHMEM_AMO_BITS(XOR)

// The names of before 1.4.
#define OLD(NAME, TYPE)                                                                                     \
  TYPE shmem_##NAME##_fetch(const TYPE* source, int pe) { return shmem_##NAME##_atomic_fetch(source, pe); } \
  void shmem_##NAME##_set(TYPE* dest, TYPE value, int pe) { shmem_##NAME##_atomic_set(dest, value, pe); }   \
  TYPE shmem_##NAME##_swap(TYPE* dest, TYPE value, int pe) { return shmem_##NAME##_atomic_swap(dest, value, pe); }
UNISONO_SHMEM_WIDE_SIGNED(OLD)
UNISONO_SHMEM_AMO_REAL(OLD)
#undef OLD
#define OLD(NAME, TYPE)                                                                              \
  TYPE shmem_##NAME##_cswap(TYPE* dest, TYPE cond, TYPE value, int pe) {                             \
    return shmem_##NAME##_atomic_compare_swap(dest, cond, value, pe);                                \
  }                                                                                                  \
  TYPE shmem_##NAME##_finc(TYPE* dest, int pe) { return shmem_##NAME##_atomic_fetch_inc(dest, pe); } \
  void shmem_##NAME##_inc(TYPE* dest, int pe) { shmem_##NAME##_atomic_inc(dest, pe); }               \
  TYPE shmem_##NAME##_fadd(TYPE* dest, TYPE value, int pe) {                                         \
    return shmem_##NAME##_atomic_fetch_add(dest, value, pe);                                         \
  }                                                                                                  \
  void shmem_##NAME##_add(TYPE* dest, TYPE value, int pe) { shmem_##NAME##_atomic_add(dest, value, pe); }
UNISONO_SHMEM_WIDE_SIGNED(OLD)
#undef OLD

uint64_t shmem_signal_fetch(const uint64_t* signal) {
  return guarded(
      [&] { return atomic("shmem_signal_fetch", Atomic::kFetch, signal, uint64_t{0}, uint64_t{0}, reach.rank); });
}

// A lock is PE 0's copy: 0, or one more than the PE that holds it.

void shmem_set_lock(long* lock) {
  UNISONO_SHMEM_NAMED("shmem_set_lock");
  guarded([&] {
    const long own = reach.rank + 1;
    for (Patience patience(kOperation);;) {
      const long holder = atomic(kOperation, Atomic::kCompareSwap, lock, own, 0L, 0);
      if (holder == 0) return;
      if (holder == own) fail(kOperation, "this PE holds the lock already, and would wait for itself");
      patience.pause();
    }
  });
}

int shmem_test_lock(long* lock) {
  UNISONO_SHMEM_NAMED("shmem_test_lock");
  return guarded(
      [&] { return atomic(kOperation, Atomic::kCompareSwap, lock, long{reach.rank + 1}, 0L, 0) == 0 ? 0 : 1; });
}

void shmem_clear_lock(long* lock) {
  UNISONO_SHMEM_NAMED("shmem_clear_lock");
  guarded([&] {
    Job::of(kOperation).quiet(kOperation);
    const long own = reach.rank + 1;
    if (atomic(kOperation, Atomic::kCompareSwap, lock, 0L, own, 0) != own) {
      fail(kOperation, "this PE does not hold the lock");
    }
  });
}

}  // extern "C"

UNISONO_SHMEM_NAMES_ATOMICS
// NOLINTEND(bugprone-macro-parentheses)
