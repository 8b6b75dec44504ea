// The waits and tests of shmem.h.
#include "doors/shmem/interface.hpp"
#include "doors/shmem/waiting.hpp"

using namespace unisono::shmem;  // NOLINT(google-build-using-namespace): the functions below are extern "C"

namespace {

template <class T>
Watched<T> one(const char* operation, const T* variable, int comparison, const T& value) {
  return Watched<T>(operation, variable, 1, nullptr, comparison, &value, true);
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): names and types cannot stand in parentheses
extern "C" {

#define DEFINE(NAME, TYPE)                                                                            \
  void shmem_##NAME##_wait_until(TYPE* ivar, int cmp, TYPE value) {                                   \
    guarded([&] { one("shmem_" #NAME "_wait_until", ivar, cmp, value).wait_all(); });                 \
  }                                                                                                   \
  int shmem_##NAME##_test(TYPE* ivar, int cmp, TYPE value) {                                          \
    return guarded([&] { return one("shmem_" #NAME "_test", ivar, cmp, value).test_all() ? 1 : 0; }); \
  }
UNISONO_SHMEM_SYNC_TYPES(DEFINE)
#undef DEFINE

// Of many variables: with one value for all, and with a value for each.
#define DEFINE_MANY(NAME, TYPE, SUFFIX, VALUE, AT, ONE)                                                                \
  void shmem_##NAME##_wait_until_all##SUFFIX(TYPE* ivars, size_t count, const int* status, int cmp, VALUE) {           \
    guarded([&] {                                                                                                      \
      Watched<TYPE>("shmem_" #NAME "_wait_until_all" #SUFFIX, ivars, count, status, cmp, AT, ONE).wait_all();          \
    });                                                                                                                \
  }                                                                                                                    \
  size_t shmem_##NAME##_wait_until_any##SUFFIX(TYPE* ivars, size_t count, const int* status, int cmp, VALUE) {         \
    return guarded([&] {                                                                                               \
      return Watched<TYPE>("shmem_" #NAME "_wait_until_any" #SUFFIX, ivars, count, status, cmp, AT, ONE).wait_any();   \
    });                                                                                                                \
  }                                                                                                                    \
  size_t shmem_##NAME##_wait_until_some##SUFFIX(TYPE* ivars, size_t count, size_t* indices, const int* status,         \
                                                int cmp, VALUE) {                                                      \
    return guarded([&] {                                                                                               \
      return Watched<TYPE>("shmem_" #NAME "_wait_until_some" #SUFFIX, ivars, count, status, cmp, AT, ONE)              \
          .wait_some(indices);                                                                                         \
    });                                                                                                                \
  }                                                                                                                    \
  int shmem_##NAME##_test_all##SUFFIX(TYPE* ivars, size_t count, const int* status, int cmp, VALUE) {                  \
    return guarded([&] {                                                                                               \
      return Watched<TYPE>("shmem_" #NAME "_test_all" #SUFFIX, ivars, count, status, cmp, AT, ONE).test_all() ? 1 : 0; \
    });                                                                                                                \
  }                                                                                                                    \
  size_t shmem_##NAME##_test_any##SUFFIX(TYPE* ivars, size_t count, const int* status, int cmp, VALUE) {               \
    return guarded([&] {                                                                                               \
      return Watched<TYPE>("shmem_" #NAME "_test_any" #SUFFIX, ivars, count, status, cmp, AT, ONE).test_any();         \
    });                                                                                                                \
  }                                                                                                                    \
  size_t shmem_##NAME##_test_some##SUFFIX(TYPE* ivars, size_t count, size_t* indices, const int* status, int cmp,      \
                                          VALUE) {                                                                     \
    return guarded([&] {                                                                                               \
      return Watched<TYPE>("shmem_" #NAME "_test_some" #SUFFIX, ivars, count, status, cmp, AT, ONE)                    \
          .test_some(indices);                                                                                         \
    });                                                                                                                \
  }
#define DEFINE(NAME, TYPE)                            \
  DEFINE_MANY(NAME, TYPE, , TYPE value, &value, true) \
  DEFINE_MANY(NAME, TYPE, _vector, TYPE* values, values, false)
UNISONO_SHMEM_SYNC_TYPES(DEFINE)
#undef DEFINE
#undef DEFINE_MANY

uint64_t shmem_signal_wait_until(uint64_t* signal, int cmp, uint64_t value) {
  return guarded([&] {
    one("shmem_signal_wait_until", signal, cmp, value).wait_all();
    return __atomic_load_n(signal, __ATOMIC_ACQUIRE);
  });
}

#define DEFINE(NAME, TYPE)                                                               \
  void shmem_##NAME##_wait(TYPE* ivar, TYPE value) {                                     \
    guarded([&] { one("shmem_" #NAME "_wait", ivar, SHMEM_CMP_NE, value).wait_all(); }); \
  }
UNISONO_SHMEM_OLD_BIT_TYPES(DEFINE)
#undef DEFINE
void shmem_wait(long* ivar, long value) {
  guarded([&] { one("shmem_wait", ivar, SHMEM_CMP_NE, value).wait_all(); });
}

}  // extern "C"

UNISONO_SHMEM_NAMES_WAITS
// NOLINTEND(bugprone-macro-parentheses)
