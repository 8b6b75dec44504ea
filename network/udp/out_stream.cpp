#include "network/udp/out_stream.hpp"

#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/header.hpp"
#include "core/text.hpp"

namespace unisono::udp {

std::byte* OutStream::reserve(std::uint32_t bytes) {
  if (bytes > max_payload_) {
    throw Error(ErrorCode::kInternal,
                formatted("a payload of {} bytes was reserved where at most {} are allowed", bytes, max_payload_));
  }
  if (ring_.size() == 0) {
    ring_ = RingMemory(ring_bytes_);
    map_ = WordMap(ring_bytes_);
  }
  reserved_ = end_ - begin_ + kHeaderBytes + in_words(bytes) <= ring_bytes_;
  if (!reserved_) {
    wants_room_ = true;
    return nullptr;
  }
  reserved_bytes_ = bytes;
  return ring_.at(end_) + kHeaderBytes;
}

void OutStream::commit(const Header& header) {
  if (!std::exchange(reserved_, false)) {
    throw Error(ErrorCode::kInternal, "a message was committed for which no memory had been reserved");
  }
  if (header.segment_bytes > reserved_bytes_) {
    throw Error(ErrorCode::kInternal, formatted("a message of {} bytes was committed, but {} had been reserved",
                                                header.segment_bytes, reserved_bytes_));
  }
  Header sealed = header;
  sealed.magic = static_cast<std::uint16_t>(kMagic);
  sealed.version = static_cast<std::uint8_t>(kWireVersion);
  sealed.session_sequence = sequence_;
  sealed.checksum = 0;
  if (!fits(sealed)) throw Error(ErrorCode::kInternal, "a header to be sent has a field that its width cannot hold");
  ++sequence_;
  seal(sealed);
  const HeaderWords words = encode(sealed);
  std::byte* const place = ring_.at(end_);
  std::memcpy(place, words.data(), sizeof words);
  const std::size_t padded = in_words(header.segment_bytes);
  std::memset(place + kHeaderBytes + header.segment_bytes, 0, padded - header.segment_bytes);
  end_ += kHeaderBytes + padded;
}

bool OutStream::acknowledged(std::uint64_t offset, std::size_t bytes) {
  const std::uint64_t end = offset + bytes;
  if (end <= begin_) return false;
  map_.mark(std::max(offset, begin_), end);
  const std::uint64_t before = begin_;
  begin_ = map_.advance(begin_, next_);
  return begin_ != before && std::exchange(wants_room_, false);
}

}  // namespace unisono::udp
