#include "network/shm/registered.hpp"

#include "core/process.hpp"

namespace unisono::shm {

RegisteredMemory::RegisteredMemory() : generation_(fork_generation()) {}

RegisteredMemory& RegisteredMemory::instance() {
  static std::atomic<RegisteredMemory*> current{nullptr};
  RegisteredMemory* live = current.load(std::memory_order_acquire);
  while (live == nullptr || live->generation_ != fork_generation()) {
    auto* made = new RegisteredMemory;  // its predecessor, if any, belongs to the parent process
    if (current.compare_exchange_strong(live, made, std::memory_order_acq_rel)) return *made;
    delete made;
  }
  return *live;
}

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
