#include "doors/shmem/heap.hpp"

#include <algorithm>
#include <iterator>

namespace unisono::shmem {

Heap::Heap(std::uint64_t begin, std::uint64_t end) {
  if (end > begin) free_.emplace(begin, end - begin);
}

std::optional<std::uint64_t> Heap::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes == 0 || bytes > ~std::uint64_t{0} - kLeastAlignment) return std::nullopt;
  const std::uint64_t unit = std::max(alignment, kLeastAlignment);
  const std::uint64_t whole = (bytes + kLeastAlignment - 1) / kLeastAlignment * kLeastAlignment;
  for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
    const auto [begin, room] = *hole;
    const std::uint64_t skipped = (unit - begin % unit) % unit;
    if (room < skipped || room - skipped < whole) continue;
    const std::uint64_t offset = begin + skipped;
    free_.erase(hole);
    if (skipped != 0) free_.emplace(begin, skipped);
    if (room - skipped > whole) free_.emplace(offset + whole, room - skipped - whole);
    used_.emplace(offset, Piece{bytes, whole});
    used_bytes_ += whole;
    return offset;
  }
  return std::nullopt;
}

bool Heap::release(std::uint64_t offset) {
  const auto found = used_.find(offset);
  if (found == used_.end()) return false;
  std::uint64_t bytes = found->second.bytes;
  used_bytes_ -= bytes;
  used_.erase(found);
  auto after = free_.lower_bound(offset);
  if (after != free_.end() && offset + bytes == after->first) {
    bytes += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    if (const auto before = std::prev(after); before->first + before->second == offset) {
      before->second += bytes;
      return true;
    }
  }
  free_.emplace(offset, bytes);
  return true;
}

std::optional<std::uint64_t> Heap::size_of(std::uint64_t offset) const {
  const auto found = used_.find(offset);
  if (found == used_.end()) return std::nullopt;
  return found->second.asked;
}

}  // namespace unisono::shmem
