// The receiving end of a ring with one sender and one receiver.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "network/shm/record.hpp"

namespace unisono::shm {

/// Takes records from a ring. Everything that arrives is copied once, checked, then used: a sender
/// that writes nonsense, at any time, can produce a RingFault or wrong payload bytes, never an access
/// outside the ring.
class RingReceiver {
 public:
  /// `ring` has `capacity` bytes (a power of two); the three words are those of this ring's lane.
  RingReceiver(const std::byte* ring, std::uint32_t capacity, std::uint32_t max_payload,
               const std::atomic<std::uint64_t>& published, std::atomic<std::uint32_t>& wants_space,
               std::atomic<std::uint64_t>& consumed)
      : ring_(ring),
        capacity_(capacity),
        max_payload_(max_payload),
        published_shared_(&published),
        wants_space_(&wants_space),
        consumed_shared_(&consumed) {}

  /// See Poe::peek; repeated without `release` it gives the same message. Throws RingFault.
  bool peek(Incoming& incoming) {
    if (!peeked_) {
      if (consumed_ == published_ && !look()) return false;
      parse();
    }
    incoming.header = header_;
    incoming.payload = {ring_ + (consumed_ & (capacity_ - 1)) + kLineBytes, header_.segment_bytes};
    return true;
  }

  /// See Poe::release. True if the sender awaits it and must be told.
  bool release() {
    if (!peeked_) throw Error(ErrorCode::kInternal, "a message was released that had not been looked at");
    peeked_ = false;
    ++sequence_;
    consumed_ += record_bytes(header_.segment_bytes);
    // Store, then load: see RingSender::reserve. Release: the sender may overwrite what we have read.
    consumed_shared_->store(consumed_, std::memory_order_seq_cst);
    if (wants_space_->load(std::memory_order_seq_cst) == 0) return false;
    // A request that the sender stores between the load and this store is lost, but the announcement that
    // follows makes the sender look, and ask, again: it cannot have read the announced number before.
    wants_space_->store(0, std::memory_order_seq_cst);
    return true;
  }

 private:
  /// Reads how far the sender has published; true if that is further than what was consumed.
  bool look() {
    const std::uint64_t published = published_shared_->load(std::memory_order_acquire);
    if (published == consumed_) return false;
    if (published - consumed_ > capacity_ || published % kLineBytes != 0) {
      throw RingFault{"its published cursor says " + std::to_string(published) + ", allowed are multiples of 64 from " +
                      std::to_string(consumed_) + " to " + std::to_string(consumed_ + capacity_)};
    }
    published_ = published;
    return true;
  }

  std::array<std::uint64_t, kHeaderWords> copy_line(std::uint64_t offset) const {
    std::array<std::uint64_t, kHeaderWords> words{};
    // One load per word, which a compiler may not repeat, whatever the sender does meanwhile.
    auto* line = reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(ring_ + offset));
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = std::atomic_ref<std::uint64_t>(line[i]).load(std::memory_order_relaxed);
    }
    return words;
  }

  void parse() {
    std::uint64_t offset = consumed_ & (capacity_ - 1);
    auto words = copy_line(offset);
    if (words[0] == kWrapMark) {
      const std::uint64_t skipped = capacity_ - offset;
      // A mark at the ring's begin would send us in circles; one without a record behind it is never published.
      if (offset == 0 || skipped >= published_ - consumed_) {
        throw RingFault{"a wrap mark stands at byte " + std::to_string(offset) + " with " +
                        std::to_string(published_ - consumed_) + " bytes published"};
      }
      consumed_ += skipped;
      offset = 0;
      words = copy_line(offset);
    }
    const Header header = decode_header(words);
    check(header, words, offset);
    header_ = header;
    peeked_ = true;
  }

  void check(const Header& header, const std::array<std::uint64_t, kHeaderWords>& words, std::uint64_t offset) const {
    const auto refuse = [&](const char* field, std::uint64_t given, const std::string& allowed) {
      throw RingFault{std::string("header field ") + field + " is " + std::to_string(given) + ", allowed is " +
                      allowed};
    };
    if (header.magic != kMagic) refuse("magic", header.magic, std::to_string(kMagic));
    if (header.version != kWireVersion) refuse("version", header.version, std::to_string(kWireVersion));
    if (header.session_sequence != sequence_) {
      refuse("session_sequence", header.session_sequence, std::to_string(sequence_));
    }
    if (header.segment_bytes > max_payload_) {
      refuse("segment_bytes", header.segment_bytes, "at most " + std::to_string(max_payload_));
    }
    const std::uint64_t bytes = record_bytes(header.segment_bytes);
    if (bytes > published_ - consumed_ || bytes > capacity_ - offset) {
      refuse("segment_bytes", header.segment_bytes,
             "a record within the " + std::to_string(published_ - consumed_) + " bytes published at byte " +
                 std::to_string(offset) + " of " + std::to_string(capacity_));
    }
    if (!is_known(header.type)) {
      refuse("type", static_cast<std::uint64_t>(header.type), "one of the message types");
    }
    if (!is_known(header.dtype)) {
      refuse("dtype", static_cast<std::uint64_t>(header.dtype), "one of the datatypes");
    }
    if (!well_formed_header(words)) throw RingFault{"reserved bits of a header are set"};
  }

  const std::byte* ring_;
  std::uint64_t capacity_;
  std::uint32_t max_payload_;
  std::uint32_t sequence_ = 0;
  std::uint64_t consumed_ = 0;   ///< private original of the shared cursor
  std::uint64_t published_ = 0;  ///< how far the sender was last seen to have published
  Header header_{};              ///< of the message at `consumed_`, if `peeked_`
  bool peeked_ = false;
  const std::atomic<std::uint64_t>* published_shared_;
  std::atomic<std::uint32_t>* wants_space_;
  std::atomic<std::uint64_t>* consumed_shared_;
};

}  // namespace unisono::shm
