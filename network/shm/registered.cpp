#include "network/shm/registered.hpp"

namespace unisono::shm {

RegisteredMemory& RegisteredMemory::instance() { return PerProcess<RegisteredMemory>::instance(); }

void RegisteredMemory::add(const std::byte* memory, std::uint64_t bytes, bool copied) {
  const std::lock_guard lock(mutex_);
  pieces_.add(memory, bytes, copied);
  count_.store(pieces_.size(), std::memory_order_release);
}

void RegisteredMemory::remove(const std::byte* memory, std::uint64_t bytes, bool copied) {
  const std::lock_guard lock(mutex_);
  pieces_.remove(memory, bytes, copied);
  count_.store(pieces_.size(), std::memory_order_release);
}

std::optional<bool> RegisteredMemory::find(const std::byte* memory, std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto piece = pieces_.around(memory, bytes);
  return piece ? std::optional(piece->value) : std::nullopt;
}

}  // namespace unisono::shm
