#include "network/tcp/frame_ring.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.hpp"
#include "core/header.hpp"
#include "core/text.hpp"

namespace unisono::tcp {

AlignedMemory allocate_aligned(std::size_t bytes) {
  AlignedMemory memory(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
  if (memory == nullptr) {
    throw Error(ErrorCode::kOutOfMemory, formatted("no memory for {} bytes of messages on their way", bytes));
  }
  return memory;
}

namespace {

/// Most sessions carry little: the memory begins small, and doubles where it does not suffice.
constexpr std::size_t kFirstBytes = 4096;

}  // namespace

std::size_t FrameRing::frame_bytes(std::size_t at) const {
  HeaderWords words;
  std::memcpy(words.data(), memory_.get() + at, sizeof words);
  return kHeaderBytes + decode_header(words).segment_bytes;
}

std::size_t FrameRing::next(std::size_t at) const {
  at += record_bytes(frame_bytes(at) - kHeaderBytes);
  return tail_ <= head_ && at == wrap_ ? 0 : at;
}

bool FrameRing::place(std::size_t bytes, std::size_t& at) const {
  if (waiting_ == 0) {
    at = 0;
    return bytes <= capacity_;
  }
  if (tail_ > head_) {
    at = tail_;
    if (capacity_ - tail_ >= bytes) return true;
    at = 0;
    return head_ >= bytes;
  }
  at = tail_;
  return head_ - tail_ >= bytes;
}

bool FrameRing::grow(std::size_t bytes) {
  std::size_t held = 0;
  for (std::size_t i = 0, at = head_; i < waiting_; ++i, at = next(at)) {
    held += record_bytes(frame_bytes(at) - kHeaderBytes);
  }
  const std::size_t larger = std::min(std::max({std::bit_ceil(held + bytes), 2 * capacity_, kFirstBytes}), most_bytes_);
  if (larger <= capacity_ || held + bytes > larger) return false;
  AlignedMemory memory = allocate_aligned(larger);
  std::size_t end = 0;
  for (std::size_t i = 0, at = head_; i < waiting_; ++i, at = next(at)) {
    const std::size_t frame = frame_bytes(at);
    std::memcpy(memory.get() + end, memory_.get() + at, frame);
    end += record_bytes(frame - kHeaderBytes);
  }
  memory_ = std::move(memory);
  capacity_ = larger;
  head_ = 0;
  tail_ = end;
  return true;
}

std::byte* FrameRing::reserve(std::uint32_t bytes) {
  if (bytes > max_payload_) {
    throw Error(ErrorCode::kInternal,
                formatted("a message of {} bytes was to be sent; a lane takes {}", bytes, max_payload_));
  }
  reserved_ = false;
  const std::size_t need = record_bytes(bytes);
  if (!place(need, reserved_at_) && (!grow(need) || !place(need, reserved_at_))) return nullptr;
  reserved_ = true;
  reserved_bytes_ = bytes;
  return memory_.get() + reserved_at_ + kHeaderBytes;
}

HeaderWords FrameRing::seal(Header header) {
  if (!reserved_ || header.segment_bytes > reserved_bytes_) {
    throw Error(ErrorCode::kInternal, formatted("a message of {} bytes was committed; reserved were {} bytes",
                                                header.segment_bytes, reserved_ ? reserved_bytes_ : 0U));
  }
  return number(header);
}

HeaderWords FrameRing::number(Header header) {
  header.magic = static_cast<std::uint16_t>(kMagic);
  header.version = static_cast<std::uint8_t>(kWireVersion);
  std::uint32_t& sequence = counted_in_ == nullptr ? sequence_ : *counted_in_;
  header.session_sequence = sequence | sequence_mark_;
  header.checksum = 0;
  if (!fits(header)) throw Error(ErrorCode::kInternal, "a header to be sent has a field that its width cannot hold");
  HeaderWords words = encode(header);
  header.checksum = checksum_of(words);
  sequence = (sequence + 1) & 0x7fffffffU;
  return encode(header);
}

void FrameRing::enqueue(const HeaderWords& words, std::size_t sent) {
  std::memcpy(memory_.get() + reserved_at_, words.data(), sizeof words);
  reserved_ = false;
  if (waiting_ == 0) {
    head_ = reserved_at_;
  } else if (reserved_at_ != tail_) {
    wrap_ = tail_;
  }
  tail_ = reserved_at_ + record_bytes(frame_bytes(reserved_at_) - kHeaderBytes);
  if (++waiting_ == 1) sent_ = sent;
}

std::size_t FrameRing::gather(std::span<iovec> pieces, bool one) const {
  std::size_t used = 0;
  const std::byte* end = nullptr;
  for (std::size_t i = 0, at = head_; i < waiting_ && !(one && i == 1); ++i, at = next(at)) {
    const std::size_t skip = i == 0 ? sent_ : 0;
    std::byte* begin = memory_.get() + at + skip;
    const std::size_t bytes = frame_bytes(at) - skip;
    if (used != 0 && begin == end) {
      pieces[used - 1].iov_len += bytes;
    } else {
      if (used == pieces.size()) break;
      pieces[used++] = {begin, bytes};
    }
    end = begin + bytes;
  }
  return used;
}

std::size_t FrameRing::consume(std::size_t bytes, bool one) {
  std::size_t consumed = 0;
  while (waiting_ != 0 && consumed < bytes) {
    const std::size_t rest = frame_bytes(head_) - sent_;
    const std::size_t part = std::min(rest, bytes - consumed);
    consumed += part;
    sent_ += part;
    if (part < rest) break;
    const std::size_t after = next(head_);
    sent_ = 0;
    if (--waiting_ == 0) {
      // The next frame takes the memory that the processor knows.
      head_ = tail_ = 0;
    } else {
      head_ = after;
    }
    if (one) break;
  }
  return consumed;
}

void FrameRing::clear() {
  memory_.reset();
  capacity_ = head_ = tail_ = waiting_ = sent_ = 0;
  reserved_ = false;
}

}  // namespace unisono::tcp
