// Memory that is registered with the provider for writes: for one message, or, where it lasts, from its first message
// on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "network/lasting_memory.hpp"
#include "network/ofi/endpoint.hpp"

namespace unisono::ofi {

/// Memory that lasts (LastingMemory) is registered as a whole when the first message needs a part of it, and stays
/// registered until it is freed. All other memory is registered for one message: it may be freed unseen.
///
/// A key that peers have is in use by one message at a time, for a peer is asked by its key to stop. Two messages at
/// once in one piece have a key each, and both stay. A key goes to another message only after everything that was to be
/// written with it is there; one whose message was cut off is closed for ever.
///
/// Thread-safe, so that memory may be freed by any thread; the endpoint is, too, and outlives this.
class Registrations final : private LastingMemory::Keeper {
 public:
  /// Memory that is registered with this key at most so often waits for further messages.
  static constexpr std::size_t kMostIdle = 4;

  struct Kept;
  /// Memory that is registered for one message.
  struct Lease {
    RegisteredPiece piece;  ///< begins at the message's first byte
    Kept* kept = nullptr;   ///< null: registered for this message alone
  };

  /// `least`: bytes of the shortest message for which memory that may be freed unseen is registered.
  explicit Registrations(Endpoint& endpoint, std::uint64_t least = 0);
  /// Closes nothing: see `clear`.
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  /// Nothing if the provider does not take it, or it is not worth while.
  std::optional<Lease> take(std::byte* memory, std::uint64_t bytes, Access access);
  /// All that was to be written from or to it was written, or nothing was begun.
  void give_back(const Lease& lease);
  /// Somebody may still have its key: that is void from here on.
  void close(const Lease& lease);
  /// Closes what no message uses. With it, nothing is left once all leases have ended.
  void clear();

  /// Registrations that were made, since it began.
  std::uint64_t made() const { return made_.load(std::memory_order_relaxed); }
  /// Those that are kept now.
  std::size_t kept() const;

 private:
  using Pieces = std::multimap<std::uintptr_t, Kept>;  ///< by where they begin

  void forget(std::span<const std::byte> memory) override;
  // Under the lock.
  std::optional<Lease> take_lasting(std::span<const std::byte> piece, std::uint64_t offset, Access access);
  std::optional<RegisteredPiece> register_piece(std::byte* memory, std::uint64_t bytes, Access access);
  bool close_idle();
  void drop(Pieces::iterator kept);
  Pieces::iterator place_of(const Kept& kept);

  Endpoint& endpoint_;
  std::uint64_t least_;
  std::atomic<std::uint64_t> made_{0};
  mutable std::mutex mutex_;
  Pieces pieces_;
};

/// A registration of lasting memory.
struct Registrations::Kept {
  std::span<const std::byte> memory;
  Access access = Access::kSource;
  RegisteredPiece piece;
  std::uint32_t uses = 0;
  bool refused = false;  ///< the provider does not take it: it is not asked again
  bool closes = false;   ///< its memory is forgotten: closed with its last use
};

}  // namespace unisono::ofi
