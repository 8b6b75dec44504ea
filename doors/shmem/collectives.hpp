// Collectives of a team, by those of Unisono.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "doors/shmem/teams.hpp"
#include "unisono/unisono.h"

namespace unisono::shmem {

/// All throw Failure. Lengths are bytes. Sources may be destinations, and overlap them.
void sync(const char* operation, const Team& team);
/// `at_root`: the root's dest is written as well.
void broadcast(const char* operation, const Team& team, void* dest, const void* source, std::uint64_t bytes, int root,
               bool at_root);
/// What all give, in the order of PEs, of lengths that may differ.
void collect(const char* operation, const Team& team, void* dest, const void* source, std::uint64_t bytes);
/// The same, of equal lengths.
void fcollect(const char* operation, const Team& team, void* dest, const void* source, std::uint64_t bytes);
/// Block j of this PE's source becomes this PE's block of j's dest.
void alltoall(const char* operation, const Team& team, void* dest, const void* source, std::uint64_t bytes);
/// The same of `count` elements of `size` bytes, of which every step-th is given and taken.
void alltoalls(const char* operation, const Team& team, void* dest, const void* source, std::ptrdiff_t dst_step,
               std::ptrdiff_t src_step, std::uint64_t count, std::uint64_t size);
/// Of a datatype of Unisono.
void reduce(const char* operation, const Team& team, void* dest, const void* source, std::uint64_t count,
            std::uint64_t size, unisono_datatype datatype, unisono_op op);

/// The datatype of a C type; 0: there is none.
template <class T>
constexpr unisono_datatype datatype_of() {
  if constexpr (std::is_integral_v<T>) {
    constexpr bool kSigned = std::is_signed_v<T>;
    switch (sizeof(T)) {
      case 1:
        return kSigned ? UNISONO_INT8 : UNISONO_UINT8;
      case 2:
        return kSigned ? UNISONO_INT16 : UNISONO_UINT16;
      case 4:
        return kSigned ? UNISONO_INT32 : UNISONO_UINT32;
      default:
        return kSigned ? UNISONO_INT64 : UNISONO_UINT64;
    }
  }
  if constexpr (std::is_same_v<T, float>) return UNISONO_FP32;
  if constexpr (std::is_same_v<T, double>) return UNISONO_FP64;
  if constexpr (std::is_same_v<T, float _Complex>) return UNISONO_COMPLEX64;
  if constexpr (std::is_same_v<T, double _Complex>) return UNISONO_COMPLEX128;
  return 0;
}

/// A reduction of T. long double, which Unisono has not, is gathered and computed by each PE, in the order of PEs.
template <class T>
void reduce(const char* operation, const Team& team, T* dest, const T* source, std::uint64_t count, unisono_op op) {
  if constexpr (datatype_of<T>() != 0) {
    reduce(operation, team, dest, source, count, sizeof(T), datatype_of<T>(), op);
  } else {
    const std::vector<T> own(source, source + count);
    std::vector<T> all(count * team.pes.size());
    fcollect(operation, team, all.data(), own.data(), count * sizeof(T));
    for (std::uint64_t i = 0; i < count; ++i) {
      T value = all[i];
      for (std::uint64_t at = i + count; at < all.size(); at += count) {
        const T next = all[at];
        if (op == UNISONO_SUM) value += next;
        if (op == UNISONO_PROD) value *= next;
        if (op == UNISONO_MAX && next > value) value = next;
        if (op == UNISONO_MIN && next < value) value = next;
      }
      dest[i] = value;
    }
  }
}

}  // namespace unisono::shmem
