#include "network/lasting_memory.hpp"

#include <algorithm>

namespace unisono {

LastingMemory& LastingMemory::instance() { return PerProcess<LastingMemory>::instance(); }

void LastingMemory::add(const std::byte* memory, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  pieces_.add(memory, bytes, {});
  count_.store(pieces_.size(), std::memory_order_release);
}

void LastingMemory::remove(const std::byte* memory, std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (!pieces_.remove(memory, bytes, {})) return;
    count_.store(pieces_.size(), std::memory_order_release);
  }
  // From here on nobody finds it. A keeper that has found it before prepares for it under the lock that its `forget`
  // takes, and so is done by then.
  tell({memory, bytes});
}

std::optional<std::span<const std::byte>> LastingMemory::around(const std::byte* memory, std::uint64_t bytes) const {
  if (count_.load(std::memory_order_acquire) == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto piece = pieces_.around(memory, bytes);
  return piece ? std::optional(piece->memory) : std::nullopt;
}

void LastingMemory::join(Keeper& keeper) {
  const std::lock_guard lock(keepers_mutex_);
  keepers_.push_back(&keeper);
}

void LastingMemory::leave(Keeper& keeper) {
  const std::lock_guard lock(keepers_mutex_);
  std::erase(keepers_, &keeper);
}

void LastingMemory::tell(std::span<const std::byte> memory) {
  const std::lock_guard lock(keepers_mutex_);
  for (Keeper* const keeper : keepers_) keeper->forget(memory);
}

}  // namespace unisono
