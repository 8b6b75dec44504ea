#include "network/shm/registered.hpp"

#include <algorithm>
#include <iterator>

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
  pieces_.emplace(reinterpret_cast<std::uintptr_t>(memory), Piece{bytes, copied});
  longest_ = std::max(longest_, bytes);
  count_.store(pieces_.size(), std::memory_order_release);
}

void RegisteredMemory::remove(const std::byte* memory, std::uint64_t bytes, bool copied) {
  const std::lock_guard lock(mutex_);
  const auto [first, last] = pieces_.equal_range(reinterpret_cast<std::uintptr_t>(memory));
  const auto found = std::find_if(
      first, last, [&](const auto& entry) { return entry.second.bytes == bytes && entry.second.copied == copied; });
  if (found == last) return;
  pieces_.erase(found);
  if (pieces_.empty()) longest_ = 0;
  count_.store(pieces_.size(), std::memory_order_release);
}

std::optional<bool> RegisteredMemory::find(const std::byte* memory, std::uint64_t bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  for (auto next = pieces_.upper_bound(begin); next != pieces_.begin();) {
    --next;
    const std::uint64_t before = begin - next->first;
    if (before >= longest_) break;  // no piece that begins so early reaches as far
    if (before <= next->second.bytes && bytes <= next->second.bytes - before) return next->second.copied;
  }
  return std::nullopt;
}

}  // namespace unisono::shm
