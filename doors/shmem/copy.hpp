// Copies of symmetric memory.
#pragma once

#include <cstdint>
#include <cstring>

namespace unisono::shmem {

/// One store of one load, if both are aligned.
template <class Word>
bool copied_at_once(void* to, const void* from) {
  if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % sizeof(Word) != 0) return false;
  __atomic_store_n(static_cast<Word*>(to), __atomic_load_n(static_cast<const Word*>(from), __ATOMIC_RELAXED),
                   __ATOMIC_RELAXED);
  return true;
}

/// Copies bytes, which may overlap. A word of 1, 2, 4 or 8 bytes is copied at once, so that who waits for it sees all
/// of it or nothing.
inline void copy(void* to, const void* from, std::uint64_t bytes) {
  switch (bytes) {
    case 8:
      if (copied_at_once<std::uint64_t>(to, from)) return;
      break;
    case 4:
      if (copied_at_once<std::uint32_t>(to, from)) return;
      break;
    case 2:
      if (copied_at_once<std::uint16_t>(to, from)) return;
      break;
    case 1:
      copied_at_once<std::uint8_t>(to, from);
      return;
    case 0:
      return;
    default:
      break;
  }
  std::memmove(to, from, bytes);
}

}  // namespace unisono::shmem
