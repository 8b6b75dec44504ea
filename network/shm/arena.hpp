// The memory that an endpoint hands out of its part of the segment: buffers that peers reach directly, and lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "network/shm/segment.hpp"

namespace unisono::shm {

/// Hands out pieces of one endpoint's arena. Only the endpoint itself uses its arena's allocator; peers use what it
/// tells them. Thread-safe. Pieces are zero when they are handed out, and cost memory as they are touched.
class Arena {
 public:
  Arena(std::shared_ptr<Segment> segment, std::uint32_t endpoint);

  /// `bytes` of zeros, page-aligned; at a huge page's border from two megabytes upwards. Null if the arena has no such
  /// piece left.
  std::byte* allocate(std::uint64_t bytes);
  /// Takes back what `allocate` gave and returns its memory to the system. False if `memory` is not the begin of such
  /// a piece.
  bool deallocate(void* memory);
  /// Whether bytes lie where all endpoints of the segment reach them: in this arena or another one of it.
  bool reaches(const std::byte* memory, std::uint64_t bytes) const { return segment_->offset_of(memory, bytes) != 0; }
  /// Bytes handed out now.
  std::uint64_t allocated() const;

  /// Something that this endpoint owes a peer and cannot do yet: `settle` tries it again until it returns true. It
  /// must not use this arena.
  void owe(std::function<bool()> debt);
  void settle();

 private:
  static constexpr std::uint64_t kPage = 4096;

  std::shared_ptr<Segment> segment_;
  std::byte* base_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;  ///< offset in the arena -> bytes; neighbours are merged
  std::map<std::uint64_t, std::uint64_t> used_;
  std::uint64_t allocated_ = 0;
  std::vector<std::function<bool()>> debts_;
};

}  // namespace unisono::shm
