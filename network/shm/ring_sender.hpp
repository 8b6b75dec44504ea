// The sending end of a ring with one sender and one receiver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "network/shm/record.hpp"

namespace unisono::shm {

/// Places records in a ring. Invariants: `published` only grows, by whole records and wrap marks; the
/// bytes between `consumed` and `published` belong to the receiver, all others to the sender; a
/// record is contiguous. What the receiver's cursor says is checked before it is used, so a broken
/// receiver cannot make the sender write outside the ring.
class RingSender {
 public:
  /// `ring` has `capacity` bytes (a power of two); the three words are those of this ring's lane.
  RingSender(std::byte* ring, std::uint32_t capacity, std::uint32_t max_payload, std::atomic<std::uint64_t>& published,
             std::atomic<std::uint32_t>& wants_space, const std::atomic<std::uint64_t>& consumed)
      : ring_(ring),
        capacity_(capacity),
        max_payload_(max_payload),
        published_shared_(&published),
        wants_space_(&wants_space),
        consumed_shared_(&consumed) {}

  /// See Poe::reserve. After nullptr, the next release of the receiver is announced. Throws RingFault.
  std::byte* reserve(std::uint32_t bytes) {
    if (bytes > max_payload_) {
      throw Error(ErrorCode::kInternal, "a message of " + std::to_string(bytes) +
                                            " bytes was to be sent; a lane takes " + std::to_string(max_payload_));
    }
    reserved_ = false;
    const std::uint64_t offset = published_ & (capacity_ - 1);
    const std::uint64_t need = record_bytes(bytes);
    const std::uint64_t until_end = capacity_ - offset;
    padding_ = until_end < need ? until_end : 0;
    if (room() < padding_ + need) {
      look(std::memory_order_acquire);
      if (room() < padding_ + need) {
        // Store, then load; the receiver stores `consumed`, then loads `wants_space`. In the single
        // order of these four operations one of the loads comes after the other side's store: either
        // the space is seen here, or the receiver sees the request and announces.
        wants_space_->store(1, std::memory_order_seq_cst);
        look(std::memory_order_seq_cst);
        if (room() < padding_ + need) return nullptr;
      }
    }
    reserved_ = true;
    reserved_bytes_ = bytes;
    return ring_ + (padding_ != 0 ? 0 : offset) + kLineBytes;
  }

  /// See Poe::commit. The payload has `header.segment_bytes` bytes, at most what was reserved.
  void commit(Header header) {
    if (!reserved_ || header.segment_bytes > reserved_bytes_) {
      throw Error(ErrorCode::kInternal, "a message of " + std::to_string(header.segment_bytes) +
                                            " bytes was committed; reserved were " +
                                            (reserved_ ? std::to_string(reserved_bytes_) + " bytes" : "none"));
    }
    header.magic = static_cast<std::uint16_t>(kMagic);
    header.version = static_cast<std::uint8_t>(kWireVersion);
    header.session_sequence = sequence_;
    header.checksum = 0;  // shared memory needs none
    if (!fits(header)) throw Error(ErrorCode::kInternal, "a header to be sent has a field that its width cannot hold");
    const auto words = encode(header);
    const std::uint64_t offset = published_ & (capacity_ - 1);
    if (padding_ != 0) std::memcpy(ring_ + offset, &kWrapMark, sizeof kWrapMark);
    std::memcpy(ring_ + (padding_ != 0 ? 0 : offset), words.data(), sizeof words);
    ++sequence_;
    reserved_ = false;
    published_ += padding_ + record_bytes(header.segment_bytes);
    // Publishes header and payload: a receiver that sees this value sees them.
    published_shared_->store(published_, std::memory_order_release);
  }

 private:
  std::uint64_t room() const { return capacity_ - (published_ - consumed_); }

  void look(std::memory_order order) {
    const std::uint64_t consumed = consumed_shared_->load(order);
    const std::uint64_t in_ring = published_ - consumed;
    if (in_ring > published_ - consumed_ || in_ring % kLineBytes != 0) {
      throw RingFault{"its consumed cursor says " + std::to_string(consumed) + ", allowed are multiples of 64 from " +
                      std::to_string(consumed_) + " to " + std::to_string(published_)};
    }
    consumed_ = consumed;
  }

  std::byte* ring_;
  std::uint64_t capacity_;
  std::uint32_t max_payload_;
  std::uint32_t sequence_ = 0;
  std::uint64_t published_ = 0;  ///< private original of the shared cursor
  std::uint64_t consumed_ = 0;   ///< what the receiver was last seen to have consumed
  std::uint64_t padding_ = 0;    ///< bytes skipped before the reserved record
  std::uint32_t reserved_bytes_ = 0;
  bool reserved_ = false;
  std::atomic<std::uint64_t>* published_shared_;
  std::atomic<std::uint32_t>* wants_space_;
  const std::atomic<std::uint64_t>* consumed_shared_;
};

}  // namespace unisono::shm
