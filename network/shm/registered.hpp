// Memory of this process that its user has registered: what is known of it, so that nobody asks the kernel again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "core/per_process.hpp"
#include "network/piece_table.hpp"

namespace unisono::shm {

/// The registered pieces of this process's memory; they may overlap. Thread-safe. Lives for ever; in a child of fork it
/// begins empty, whatever the parent's threads were doing.
class RegisteredMemory {
 public:
  static RegisteredMemory& instance();

  /// Enters `bytes` at `memory`, at least one; `copied`: the kernel copies them (KernelCopy).
  void add(const std::byte* memory, std::uint64_t bytes, bool copied);
  /// Takes out what was entered with the same words.
  void remove(const std::byte* memory, std::uint64_t bytes, bool copied);

  /// Whether the kernel copies these bytes, at least one; nothing if they do not lie in one registered piece.
  std::optional<bool> copied(const std::byte* memory, std::uint64_t bytes) const {
    return count_.load(std::memory_order_acquire) == 0 ? std::nullopt : find(memory, bytes);
  }

  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

 private:
  friend class PerProcess<RegisteredMemory>;
  RegisteredMemory() = default;
  ~RegisteredMemory() = default;
  std::optional<bool> find(const std::byte* memory, std::uint64_t bytes) const;

  std::atomic<std::uint64_t> count_{0};
  mutable std::mutex mutex_;
  PieceTable<bool> pieces_;  ///< and whether the kernel copies them
};

}  // namespace unisono::shm
