#include "network/shm/arena.hpp"

#include <sys/mman.h>

#include <cstring>
#include <iterator>

namespace unisono::shm {

Arena::Arena(std::shared_ptr<Segment> segment, std::uint32_t endpoint)
    : segment_(std::move(segment)), base_(segment_->arena(endpoint)) {
  free_.emplace(0, segment_->geometry().arena_bytes);
}

std::byte* Arena::allocate(std::uint64_t bytes) {
  const std::uint64_t most = segment_->geometry().arena_bytes;
  if (bytes > most) return nullptr;
  const bool huge = bytes >= kArenaAlignment;
  const std::uint64_t alignment = huge ? kArenaAlignment : kPage;
  const std::uint64_t size = bytes == 0 ? kPage : (bytes + kPage - 1) / kPage * kPage;
  const std::lock_guard lock(mutex_);
  for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
    const auto [offset, length] = *piece;
    const std::uint64_t begin = (offset + alignment - 1) / alignment * alignment;
    if (begin + size > offset + length) continue;
    free_.erase(piece);
    if (begin > offset) free_.emplace(offset, begin - offset);
    if (begin + size < offset + length) free_.emplace(begin + size, offset + length - begin - size);
    used_.emplace(begin, size);
    allocated_ += size;
    if (huge) madvise(base_ + begin, size, MADV_HUGEPAGE);  // advice: without it pages are small
    return base_ + begin;
  }
  return nullptr;
}

bool Arena::deallocate(void* memory) {
  const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(memory) - base_);
  const std::lock_guard lock(mutex_);
  const auto piece = used_.find(offset);
  if (piece == used_.end()) return false;
  std::uint64_t begin = offset;
  std::uint64_t size = piece->second;
  used_.erase(piece);
  allocated_ -= size;
  // Gives the pages back; what is handed out next reads as zero. Where the system cannot, zeros are written.
  if (madvise(base_ + begin, size, MADV_REMOVE) != 0) std::memset(base_ + begin, 0, size);
  if (retired_.erase(offset) != 0) return true;
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == begin + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  free_.emplace(begin, size);
  return true;
}

void Arena::retire(const void* address) {
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
  const std::lock_guard lock(mutex_);
  auto piece = used_.upper_bound(offset);
  if (piece == used_.begin()) return;
  --piece;
  if (offset - piece->first < piece->second) retired_.insert(piece->first);
}

std::uint64_t Arena::allocated() const {
  const std::lock_guard lock(mutex_);
  return allocated_;
}

}  // namespace unisono::shm
