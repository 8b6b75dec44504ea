// One endpoint of a network of reliable datagrams: what this folder needs of libfabric. Tests have others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "network/ofi/block_pool.hpp"
#include "network/ofi/card.hpp"

namespace unisono::ofi {

/// An operation that is over.
struct Completion {
  Block* block = nullptr;  ///< that was posted; null: of none
  std::uint32_t bytes = 0;
  int fault = 0;          ///< 0, or a number of libfabric's
  bool too_long = false;  ///< of a receive: what came was longer than its room
};

/// What became of an operation that was to begin: 0, or a number of libfabric's.
struct Posted {
  int fault = 0;
  bool later = false;  ///< nothing is wrong, but there is no room: again after `read`
  bool done() const { return fault == 0 && !later; }
};

/// Memory that is registered with the provider.
struct RegisteredPiece {
  void* handle = nullptr;      ///< the endpoint's
  void* descriptor = nullptr;  ///< for operations of this end's, where the provider wants one
  std::uint64_t address = 0;   ///< of its first byte, and ...
  std::uint64_t key = 0;       ///< ... what a peer must say to write there
};

/// What a piece of memory is registered for: to be written from, or by peers.
enum class Access : std::uint8_t { kSource, kTarget };

/// A write to a peer's memory.
struct RemoteWrite {
  const std::byte* from = nullptr;
  std::uint64_t bytes = 0;
  void* descriptor = nullptr;  ///< of the registered memory that it is from
  std::uint64_t address = 0;   ///< at the peer
  std::uint64_t key = 0;
};

/// Used by one thread at a time, but memory is deregistered by any.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  virtual Card card() const = 0;
  /// How an address is named from then on. Throws Error(kBootstrap).
  virtual std::uint64_t insert(std::span<const std::byte> address) = 0;
  /// Memory from which, and into which, operations go from then on. Returns its descriptor. Throws Error(kOutOfMemory).
  virtual void* add_memory(std::byte* memory, std::size_t bytes) = 0;
  /// Receives that may be under way at once.
  virtual std::size_t most_receives() const = 0;

  virtual Posted post_receive(Block& block, std::size_t room) = 0;
  virtual Posted post_send(std::uint64_t to, Block& block) = 0;

  /// Writes to peers' memory of at most so many bytes; 0: none, and the next four functions are not called.
  virtual std::uint64_t longest_write() const { return 0; }
  /// Whether a message that is posted behind a write comes when all of that was written. If not, a write is over when
  /// its bytes are at the peer, else as soon as they are not needed here any more.
  virtual bool orders_writes() const { return false; }
  /// Whether what is written must come from registered memory.
  virtual bool registers_sources() const { return false; }
  /// Nothing if the provider does not take it, for instance because it has too much already. A piece that peers may
  /// write has a key of its own that nobody can guess, as far as the provider leaves the choice.
  virtual std::optional<RegisteredPiece> register_piece(std::byte* /*memory*/, std::size_t /*bytes*/,
                                                        Access /*access*/) {
    return std::nullopt;
  }
  /// No write that comes from now on gets there; one that has begun may go on.
  virtual void deregister(const RegisteredPiece& /*piece*/) {}
  /// `block` is for the completion alone: nothing of its frame is sent.
  virtual Posted post_write(std::uint64_t /*to*/, Block& /*block*/, const RemoteWrite& /*write*/) { return {0, true}; }

  /// Operations that are over. Drives those that are not. Throws Error(kInternal) if the provider has failed.
  virtual std::size_t read(std::span<Completion> completions) = 0;
  /// What a fault is.
  virtual std::string text_of(int fault) const = 0;

  /// Readable when operations may be over; -1: the provider has none.
  virtual int descriptor() const = 0;
  /// Whether one may sleep on it now.
  virtual bool may_sleep() = 0;
  /// Its destruction is to leave everything as it is, for that is another process's.
  virtual void abandon() = 0;
};

}  // namespace unisono::ofi
