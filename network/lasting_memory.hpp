// Memory of this process that stays valid until it is said here that it does not: memory that its user has registered,
// and memory that this library has handed out. A network may prepare for it once, instead of for each message.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/per_process.hpp"
#include "network/piece_table.hpp"

namespace unisono {

/// The lasting pieces of this process's memory; they may overlap. Thread-safe. Lives for ever; in a child of fork it
/// begins empty, and without keepers.
///
/// Networks that have nothing to prepare ignore it. Memory that is not here may be freed unseen, so nothing that was
/// prepared for it may outlive the message that it was prepared for.
class LastingMemory {
 public:
  /// Prepares for such memory, and keeps what it has prepared.
  class Keeper {
   public:
    /// These bytes are about to be freed, or have other pages now: what was prepared for any of them is given up, at
    /// once if it is not in use, else after the message that uses it. Called by any thread, which may hold any lock of
    /// the library's but the keeper's own. Must not come back here.
    virtual void forget(std::span<const std::byte> memory) = 0;

   protected:
    ~Keeper() = default;
  };

  static LastingMemory& instance();

  /// Enters `bytes` at `memory`, at least one. They may be read-only.
  void add(const std::byte* memory, std::uint64_t bytes);
  /// Takes out what was entered with the same words. When it returns, all keepers have forgotten these bytes, and the
  /// memory may be freed. In no message's use, as a rule of its owner's.
  void remove(const std::byte* memory, std::uint64_t bytes);
  /// The bytes stay valid, but other pages stand behind them from now on.
  void repaged(const std::byte* memory, std::uint64_t bytes) { tell({memory, bytes}); }

  /// A piece that has all of these bytes, at least one; nothing: they may be freed unseen.
  std::optional<std::span<const std::byte>> around(const std::byte* memory, std::uint64_t bytes) const;

  void join(Keeper& keeper);
  /// When it returns, `forget` is not running, and will not be called. Nothing if the keeper has not joined.
  void leave(Keeper& keeper);

  LastingMemory(const LastingMemory&) = delete;
  LastingMemory& operator=(const LastingMemory&) = delete;

 private:
  struct Nothing {
    friend bool operator==(Nothing, Nothing) { return true; }
  };

  friend class PerProcess<LastingMemory>;
  LastingMemory() = default;
  ~LastingMemory() = default;
  void tell(std::span<const std::byte> memory);

  std::atomic<std::uint64_t> count_{0};
  mutable std::mutex mutex_;  ///< of the pieces; nothing else is locked under it
  PieceTable<Nothing> pieces_;
  std::mutex keepers_mutex_;  ///< of the keepers; theirs are locked under it
  std::vector<Keeper*> keepers_;
};

/// Memory that lasts for as long as this lives.
class LastingPiece {
 public:
  LastingPiece(const std::byte* memory, std::uint64_t bytes) : memory_(memory), bytes_(bytes) {
    LastingMemory::instance().add(memory_, bytes_);
  }
  ~LastingPiece() { LastingMemory::instance().remove(memory_, bytes_); }
  LastingPiece(const LastingPiece&) = delete;
  LastingPiece& operator=(const LastingPiece&) = delete;

 private:
  const std::byte* memory_;
  std::uint64_t bytes_;
};

}  // namespace unisono
