// One lane's stream on its way out: what was committed, until the peer has it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/generated/spec.hpp"
#include "network/udp/ring_memory.hpp"
#include "network/udp/word_map.hpp"

namespace unisono::udp {

/// A stream is messages one after the other, each a header of 64 bytes, its payload, and zeros up to a multiple of 64.
/// It is kept until it is acknowledged, so that any piece can be sent again from where it lies.
class OutStream {
 public:
  OutStream(std::uint32_t max_payload, std::size_t ring_bytes) : max_payload_(max_payload), ring_bytes_(ring_bytes) {}

  /// See Network::reserve. The first one takes the memory.
  std::byte* reserve(std::uint32_t bytes);
  /// See Network::commit.
  void commit(const Header& header);

  /// Bytes from here on have never been sent, up to `end`.
  std::uint64_t next() const { return next_; }
  std::uint64_t end() const { return end_; }
  /// How much of that the peer has room for.
  std::size_t sendable() const { return static_cast<std::size_t>(std::min(end_, std::max(limit_, next_)) - next_); }
  void sent(std::size_t bytes) { next_ += bytes; }
  /// What the peer says it has room for. Pieces are whole words, whatever it says.
  void raise_limit(std::uint64_t limit) { limit_ = std::max(limit_, limit / kWord * kWord); }

  std::span<const std::byte> piece(std::uint64_t offset, std::size_t bytes) const { return {ring_.at(offset), bytes}; }
  /// The peer has this piece. True if there is room again after there was none.
  bool acknowledged(std::uint64_t offset, std::size_t bytes);
  bool has(std::uint64_t offset, std::size_t bytes) {
    return offset + bytes <= begin_ || map_.has(std::max(offset, begin_), offset + bytes);
  }
  /// Whether the peer has all of it.
  bool delivered() const { return begin_ == end_; }

 private:
  std::uint32_t max_payload_;
  std::size_t ring_bytes_;
  RingMemory ring_;
  WordMap map_;
  std::uint64_t begin_ = 0;  ///< what is before, the peer has
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t limit_ = 0;
  std::uint32_t reserved_bytes_ = 0;
  bool reserved_ = false;
  bool wants_room_ = false;
  std::uint32_t sequence_ = 0;
};

}  // namespace unisono::udp
