// Memory that begins again where it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace unisono::udp {

/// Mapped twice, the second time right behind the first: what lies across its end is in one piece all the same. Takes
/// memory of the system where it has been written.
class RingMemory {
 public:
  RingMemory() = default;
  /// `bytes` is a power of two, and at least a page. Throws Error(kOutOfMemory).
  explicit RingMemory(std::size_t bytes);
  ~RingMemory();
  RingMemory(RingMemory&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  RingMemory& operator=(RingMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  /// Where an offset of the stream lies; `size()` bytes from there on are in one piece.
  std::byte* at(std::uint64_t offset) { return memory_ + (offset & (bytes_ - 1)); }
  const std::byte* at(std::uint64_t offset) const { return memory_ + (offset & (bytes_ - 1)); }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace unisono::udp
