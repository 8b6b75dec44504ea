#include "driver/allocations.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "core/error.hpp"
#include "network/lasting_memory.hpp"
#include "network/shm/arena.hpp"

namespace unisono::driver {

Allocation Allocation::make(std::shared_ptr<shm::Arena> arena, std::uint64_t bytes) {
  Allocation made{std::move(arena), nullptr, bytes};
  made.memory = made.arena->allocate(bytes);
  if (made.memory == nullptr || bytes == 0) return made;
  try {
    LastingMemory::instance().add(made.memory, bytes);
  } catch (...) {
    made.arena->deallocate(made.memory);
    throw;
  }
  return made;
}

void Allocation::give_back() const {
  // First: the arena takes the pages away, and hands the memory out again.
  if (bytes != 0) LastingMemory::instance().remove(memory, bytes);
  arena->deallocate(memory);
}

struct Allocations::Table {
  struct Entry {
    std::uint64_t context;
    Allocation allocation;
  };
  std::mutex mutex;
  std::unordered_map<void*, Entry> entries;
};

Allocations::Allocations() : table_(std::make_unique<Table>()) {}
Allocations::~Allocations() = default;

Allocations& Allocations::instance() { return PerProcess<Allocations>::instance(); }

void Allocations::add(std::uint64_t context, Allocation allocation) {
  const std::lock_guard lock(table_->mutex);
  void* const memory = allocation.memory;
  table_->entries.emplace(memory, Table::Entry{context, std::move(allocation)});
}

bool Allocations::hold(const std::byte* memory, std::uint64_t bytes) const {
  const std::lock_guard lock(table_->mutex);
  return std::any_of(table_->entries.begin(), table_->entries.end(),
                     [&](const auto& entry) { return entry.second.allocation.arena->reaches(memory, bytes); });
}

void Allocations::release(std::uint64_t context, void* memory) {
  Allocation allocation;
  {
    const std::lock_guard lock(table_->mutex);
    const auto found = table_->entries.find(memory);
    if (found == table_->entries.end() || found->second.context != context) {
      throw Error(ErrorCode::kInvalidArgument,
                  found == table_->entries.end()
                      ? "deallocate: the address is not the begin of memory that unisono_allocate gave, or it was "
                        "given back before"
                      : "deallocate: the memory was allocated for another context; give that one");
    }
    allocation = std::move(found->second.allocation);
    table_->entries.erase(found);
  }
  allocation.give_back();
}

}  // namespace unisono::driver
