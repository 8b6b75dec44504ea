// One endpoint of a network of reliable datagrams: what this folder needs of libfabric. Tests have others.
#pragma once

#include <cstddef>
#include <cstdint>
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
