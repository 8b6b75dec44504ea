// Memory that the C interface has handed out, by address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/per_process.hpp"

namespace unisono::shm {
class Arena;
}

namespace unisono::driver {

/// A piece of an arena. The reference keeps it mapped. Networks know it as lasting memory until it is given back.
struct Allocation {
  std::shared_ptr<shm::Arena> arena;
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;

  /// Null memory if the arena has no such piece left.
  static Allocation make(std::shared_ptr<shm::Arena> arena, std::uint64_t bytes);
  void give_back() const;
};

/// The live allocations of this process. They outlive their contexts: a program may hold such memory for as long
/// as it likes, and needs no context any more to give it back. Thread-safe. Begins empty in a child of fork,
/// where the memory is still the parent's.
class Allocations {
 public:
  static Allocations& instance();

  /// Registers an allocation of the context with this handle.
  void add(std::uint64_t context, Allocation allocation);
  /// Whether some live allocation, of whatever context, has these bytes, at least one.
  bool hold(const std::byte* memory, std::uint64_t bytes) const;
  /// Returns memory to its arena. Throws Error(kInvalidArgument) unless it is the begin of an allocation of `context`.
  void release(std::uint64_t context, void* memory);

  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

 private:
  friend class PerProcess<Allocations>;
  Allocations();
  ~Allocations();
  struct Table;
  std::unique_ptr<Table> table_;
};

}  // namespace unisono::driver
