// Bytes of a stream between the place where they are produced and the one up to which they are used, in fixed memory.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace unisono::sim {

/// Offsets count from the begin of the stream. Memory is allocated when the first byte comes. Rings of equal capacity
/// have equal places for equal offsets, so what is contiguous in one is so in all.
class ByteRing {
 public:
  explicit ByteRing(std::uint64_t capacity = 0) : capacity_(capacity) {}

  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }
  std::uint64_t room() const { return capacity_ - (end_ - begin_); }

  /// Where the next bytes go: contiguous, at most `room()` of them.
  std::span<std::byte> space() {
    if (bytes_.empty()) bytes_.resize(capacity_);
    const std::uint64_t at = capacity_ == 0 ? 0 : end_ % capacity_;
    return std::span(bytes_).subspan(at, std::min(room(), capacity_ - at));
  }
  void produced(std::uint64_t bytes) {
    assert(bytes <= room());
    end_ += bytes;
  }
  /// Takes bytes that fit.
  void append(std::span<const std::byte> from) {
    while (!from.empty()) {
      const std::span<std::byte> to = space();
      const std::size_t part = std::min(to.size(), from.size());
      assert(part != 0);
      std::memcpy(to.data(), from.data(), part);
      produced(part);
      from = from.subspan(part);
    }
  }
  /// Bytes from an offset on, contiguous, as far as they are there.
  std::span<const std::byte> from(std::uint64_t offset) const {
    assert(begin_ <= offset && offset <= end_);
    if (offset == end_) return {};
    const std::uint64_t at = offset % capacity_;
    return std::span(bytes_).subspan(at, std::min(end_ - offset, capacity_ - at));
  }
  /// Nobody needs what is before an offset any more.
  void used(std::uint64_t offset) {
    assert(begin_ <= offset && offset <= end_);
    begin_ = offset;
  }

 private:
  std::uint64_t capacity_;
  std::uint64_t begin_ = 0, end_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace unisono::sim
