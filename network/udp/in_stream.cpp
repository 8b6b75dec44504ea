#include "network/udp/in_stream.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/header.hpp"
#include "network/frame_fault.hpp"

namespace unisono::udp {

InStream::InStream(std::uint32_t max_payload, std::size_t ring_bytes)
    : max_payload_(max_payload), ring_bytes_(ring_bytes) {}

bool InStream::place(std::uint64_t offset, std::span<const std::byte> piece) {
  // No stream ever gets as far as 2^63, so that sums do not overflow.
  if (!fault_.empty() || offset > limit() || piece.size() > limit() - offset) return false;
  const std::uint64_t end = offset + piece.size();
  if (end <= whole_) return true;
  if (ring_.size() == 0) {
    ring_ = RingMemory(ring_bytes_);
    map_ = WordMap(ring_bytes_);
  }
  // What a reader may look at is left alone.
  const std::uint64_t begin = std::max(offset, whole_);
  std::memcpy(ring_.at(begin), piece.data() + (begin - offset), static_cast<std::size_t>(end - begin));
  map_.mark(begin, end);
  furthest_ = std::max(furthest_, end);
  whole_ = map_.advance(whole_, furthest_);
  check_messages();
  return true;
}

Header InStream::header_at(std::uint64_t offset) const {
  HeaderWords words;
  std::memcpy(words.data(), ring_.at(offset), sizeof words);
  return decode_header(words);
}

void InStream::check_messages() {
  for (;;) {
    if (awaited_ == 0) {
      if (whole_ - checked_ < kHeaderBytes) return;
      HeaderWords words;
      std::memcpy(words.data(), ring_.at(checked_), sizeof words);
      const Header header = decode_header(words);
      fault_ = fault_of(words, header, static_cast<std::uint32_t>(sequence_), max_payload_);
      if (!fault_.empty()) return;
      awaited_ = kHeaderBytes + in_words(header.segment_bytes);
    }
    if (whole_ - checked_ < awaited_) return;
    checked_ += std::exchange(awaited_, 0);
    ++sequence_;
  }
}

bool InStream::peek(Incoming& incoming) {
  if (taken_ == checked_) return false;
  peeked_ = true;
  incoming.header = header_at(taken_);
  incoming.payload = {ring_.at(taken_) + kHeaderBytes, incoming.header.segment_bytes};
  return true;
}

void InStream::release() {
  if (!std::exchange(peeked_, false)) {
    throw Error(ErrorCode::kInternal, "a message was released that had not been looked at");
  }
  taken_ += kHeaderBytes + in_words(header_at(taken_).segment_bytes);
}

}  // namespace unisono::udp
