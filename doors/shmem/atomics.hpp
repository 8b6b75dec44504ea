// Atomic operations on words of 32 and 64 bits, by the processor.
#pragma once

#include <cstdint>

namespace unisono::shmem {

enum class Atomic : std::uint32_t { kFetch = 1, kSet, kSwap, kCompareSwap, kAdd, kAnd, kOr, kXor };

template <class Word>
Word apply_to(Atomic operation, Word* word, Word operand, Word comparand) {
  switch (operation) {
    case Atomic::kFetch:
      return __atomic_load_n(word, __ATOMIC_SEQ_CST);
    case Atomic::kSet:
      __atomic_store_n(word, operand, __ATOMIC_SEQ_CST);
      return 0;
    case Atomic::kSwap:
      return __atomic_exchange_n(word, operand, __ATOMIC_SEQ_CST);
    case Atomic::kCompareSwap:
      __atomic_compare_exchange_n(word, &comparand, operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      return comparand;
    case Atomic::kAdd:
      return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
    case Atomic::kAnd:
      return __atomic_fetch_and(word, operand, __ATOMIC_SEQ_CST);
    case Atomic::kOr:
      return __atomic_fetch_or(word, operand, __ATOMIC_SEQ_CST);
    case Atomic::kXor:
      return __atomic_fetch_xor(word, operand, __ATOMIC_SEQ_CST);
  }
  return 0;
}

/// Applies an operation to an aligned word of 4 or 8 bytes. Returns what stood there before; for kSet nothing of use.
inline std::uint64_t apply(Atomic operation, std::uint32_t width, void* address, std::uint64_t operand,
                           std::uint64_t comparand) {
  if (width == sizeof(std::uint32_t)) {
    return apply_to(operation, static_cast<std::uint32_t*>(address), static_cast<std::uint32_t>(operand),
                    static_cast<std::uint32_t>(comparand));
  }
  return apply_to(operation, static_cast<std::uint64_t*>(address), operand, comparand);
}

}  // namespace unisono::shmem
