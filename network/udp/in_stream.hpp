// One lane's stream as it comes: pieces in any order, messages in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "network/poe.hpp"
#include "network/udp/ring_memory.hpp"
#include "network/udp/word_map.hpp"

namespace unisono::udp {

/// Puts pieces where they belong, checks every header once, and hands out messages where they lie. Whatever comes, it
/// takes no more than its memory holds, and memory that a reader has given back is not written before it is offered.
class InStream {
 public:
  InStream(std::uint32_t max_payload, std::size_t ring_bytes);

  /// The peer may send so far: what was released, and the memory behind it.
  std::uint64_t limit() const { return taken_ + ring_bytes_; }
  /// A piece, whose offset and length are multiples of 64. False if it is beyond the limit, or there is a fault.
  bool place(std::uint64_t offset, std::span<const std::byte> piece);
  /// Whether pieces are missing before others that have come.
  bool has_gap() const { return furthest_ != whole_; }

  /// See Poe::peek. Without a message, `fault` tells whether there can be another one.
  bool peek(Incoming& incoming);
  /// See Poe::release.
  void release();
  /// What is wrong with what came after the last message; empty if nothing.
  const std::string& fault() const { return fault_; }
  /// Messages that have come whole.
  std::uint64_t messages() const { return sequence_; }

 private:
  void check_messages();
  Header header_at(std::uint64_t offset) const;

  std::uint32_t max_payload_;
  std::size_t ring_bytes_;
  RingMemory ring_;
  WordMap map_;
  std::uint64_t taken_ = 0;     ///< what is before was released
  std::uint64_t checked_ = 0;   ///< what is before are whole messages without fault
  std::uint64_t whole_ = 0;     ///< what is before has come
  std::uint64_t furthest_ = 0;  ///< what is behind has not
  std::uint64_t awaited_ = 0;   ///< length of the message at `checked_`; 0: not known
  std::uint64_t sequence_ = 0;
  bool peeked_ = false;
  std::string fault_;
};

}  // namespace unisono::udp
