// Waits for, and tests of, this PE's symmetric memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "doors/shmem/failure.hpp"
#include "doors/shmem/patience.hpp"
#include "doors/shmem/reach.hpp"

namespace unisono::shmem {

enum class Comparison : int { kEq = 1, kNe, kGt, kLe, kLt, kGe };

template <class T>
bool holds(const T* variable, Comparison comparison, T value) {
  const T now = __atomic_load_n(variable, __ATOMIC_ACQUIRE);
  switch (comparison) {
    case Comparison::kEq:
      return now == value;
    case Comparison::kNe:
      return now != value;
    case Comparison::kGt:
      return now > value;
    case Comparison::kLe:
      return now <= value;
    case Comparison::kLt:
      return now < value;
    case Comparison::kGe:
      return now >= value;
  }
  return false;
}

/// Throws Failure unless it is one.
inline Comparison comparison_of(const char* operation, int number) {
  if (number < 1 || number > static_cast<int>(Comparison::kGe)) {
    fail(operation, "a comparison of " + std::to_string(number) +
                        " was given; allowed are SHMEM_CMP_EQ, _NE, _GT, "
                        "_LE, _LT and _GE");
  }
  return static_cast<Comparison>(number);
}

/// Variables that are waited for, or tested, and the value of each: one for all, or its own.
template <class T>
class Watched {
 public:
  Watched(const char* operation, const T* variables, std::size_t count, const int* passed_over, int comparison,
          const T* values, bool one_value)
      : operation_(operation),
        variables_(variables),
        count_(count),
        passed_over_(passed_over),
        comparison_(comparison_of(operation, comparison)),
        values_(values),
        one_value_(one_value) {
    if (count == 0) return;
    if (count > ~std::size_t{0} / sizeof(T)) fail(operation, std::to_string(count) + " variables were given");
    const Target place = resolve(operation, variables, count * sizeof(T), reach.rank);
    if (place.offset % sizeof(T) != 0) fail(operation, "the address is not at a multiple of its type's bytes");
  }

  bool counts(std::size_t i) const { return passed_over_ == nullptr || passed_over_[i] == 0; }
  bool holds(std::size_t i) const { return shmem::holds(variables_ + i, comparison_, values_[one_value_ ? 0 : i]); }

  bool test_all() const {
    glance(operation_);
    for (std::size_t i = 0; i < count_; ++i) {
      if (counts(i) && !holds(i)) return false;
    }
    return true;
  }
  /// One that holds; SIZE_MAX: none.
  std::size_t test_any() const {
    glance(operation_);
    return next();
  }
  /// Writes which ones hold. Returns their number.
  std::size_t test_some(std::size_t* indices) const {
    glance(operation_);
    return all_that_hold(indices);
  }

  void wait_all() const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (!counts(i)) continue;
      for (Patience patience(operation_); !holds(i);) patience.pause();
    }
  }
  std::size_t wait_any() const {
    if (none_counts()) return SIZE_MAX;
    Patience patience(operation_);
    for (;;) {
      if (const std::size_t found = next(); found != SIZE_MAX) return found;
      patience.pause();
    }
  }
  std::size_t wait_some(std::size_t* indices) const {
    if (none_counts()) return 0;
    Patience patience(operation_);
    for (;;) {
      if (const std::size_t found = all_that_hold(indices); found != 0) return found;
      patience.pause();
    }
  }

 private:
  bool none_counts() const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (counts(i)) return false;
    }
    return true;
  }
  /// The search goes on behind what this thread found last, so that each that holds has its turn.
  std::size_t next() const {
    thread_local std::size_t begin = 0;
    for (std::size_t step = 0; step < count_; ++step) {
      const std::size_t i = (begin % count_ + step) % count_;
      if (!counts(i) || !holds(i)) continue;
      begin = i + 1;
      return i;
    }
    return SIZE_MAX;
  }
  std::size_t all_that_hold(std::size_t* indices) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (counts(i) && holds(i)) indices[found++] = i;
    }
    return found;
  }

  const char* operation_;
  const T* variables_;
  std::size_t count_;
  const int* passed_over_;
  Comparison comparison_;
  const T* values_;
  bool one_value_;
};

}  // namespace unisono::shmem
