// Pieces of the symmetric heap, by their offsets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace unisono::shmem {

/// Which parts of a heap are in use. PEs that make the same calls in the same order get the same offsets, which is what
/// makes an address symmetric. Not thread-safe.
class Heap {
 public:
  /// Pieces begin at multiples of this, or of more.
  static constexpr std::uint64_t kLeastAlignment = 64;

  /// A heap of bytes `begin` to `end`.
  Heap(std::uint64_t begin, std::uint64_t end);

  /// The lowest place that is free, at a multiple of `alignment`, a power of two. Nothing if there is none, or if 0
  /// bytes are asked for.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment = kLeastAlignment);
  /// False unless a piece begins there.
  bool release(std::uint64_t offset);
  /// Bytes that were asked for of the piece that begins there, or nothing.
  std::optional<std::uint64_t> size_of(std::uint64_t offset) const;
  /// Bytes in use, with what was added to align them.
  std::uint64_t used() const { return used_bytes_; }

 private:
  struct Piece {
    std::uint64_t asked;
    std::uint64_t bytes;
  };
  std::map<std::uint64_t, std::uint64_t> free_;  ///< offset -> bytes; neighbours are merged
  std::map<std::uint64_t, Piece> used_;
  std::uint64_t used_bytes_ = 0;
};

}  // namespace unisono::shmem
