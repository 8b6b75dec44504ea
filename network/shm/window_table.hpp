// Where the windows of a communicator's members stand, and who is at them. A part of the communicator's lanes.
//
// Each rank has a line in which it shows the memory that its peers may put into and get from, and each pair a word in
// which a rank says that it is at the other's window. To show another window, or none, its owner hides the line, waits
// until nobody is at it, and only then changes it. Either the visitor sees that the line is hidden, or the owner sees
// the visitor: both store, then load, with sequential consistency.
#pragma once

#include <atomic>
#include <cstdint>

#include "network/shm/segment.hpp"

namespace unisono::shm {

/// What one rank shows of its window. Written by that rank only.
struct alignas(2 * kLineBytes) WindowLine {
  std::atomic<std::uint32_t> shown;  ///< 0: hidden, as it is at first
  std::atomic<std::uint64_t> reach;  ///< as Reach has it
  std::atomic<std::uint64_t> bytes;
};

/// The windows of a communicator, as one of its members sees them. Several threads may visit at once; one shows.
class WindowTable {
 public:
  struct Place {
    std::uint64_t reach = 0;
    std::uint64_t bytes = 0;
  };

  /// Words of one rank's row of visits, in cache lines of their own.
  static constexpr std::uint64_t row(std::uint64_t ranks) {
    constexpr std::uint64_t kWords = kLineBytes / sizeof(std::uint32_t);
    return (ranks + kWords - 1) / kWords * kWords;
  }

  WindowTable() = default;
  /// `banned` is the communicator's (TouchGuard); `lines` by owner; `visits` in rows by visitor.
  WindowTable(const std::atomic<std::uint32_t>& banned, WindowLine* lines, std::atomic<std::uint32_t>* visits,
              std::uint32_t rank, std::uint32_t ranks)
      : banned_(&banned), lines_(lines), visits_(visits), rank_(rank), row_(row(ranks)) {}

  // Of who reaches for the window of a peer, or for this rank's own.

  /// Says that this rank is at a window; false, and it must not be, if that is hidden, or access was forbidden.
  bool enter(std::uint32_t owner, Place& place) const {
    std::atomic<std::uint32_t>& visit = visits_[rank_ * row_ + owner];
    visit.fetch_add(1, std::memory_order_seq_cst);
    const WindowLine& line = lines_[owner];
    if (line.shown.load(std::memory_order_seq_cst) != 0 && banned_->load(std::memory_order_seq_cst) == 0) [[likely]] {
      place = {line.reach.load(std::memory_order_relaxed), line.bytes.load(std::memory_order_relaxed)};
      return true;
    }
    visit.fetch_sub(1, std::memory_order_release);
    return false;
  }
  void leave(std::uint32_t owner) const { visits_[rank_ * row_ + owner].fetch_sub(1, std::memory_order_release); }

  // Of the owner.

  /// From now on nobody enters.
  void hide() const { lines_[rank_].shown.store(0, std::memory_order_seq_cst); }
  /// Whether a rank is at this rank's window; once false after `hide`, it stays so.
  bool visited_by(std::uint32_t visitor) const {
    return visits_[visitor * row_ + rank_].load(std::memory_order_seq_cst) != 0;
  }
  /// Shows the window, which is hidden, and at which nobody is.
  void show(const Place& place) const {
    lines_[rank_].reach.store(place.reach, std::memory_order_relaxed);
    lines_[rank_].bytes.store(place.bytes, std::memory_order_relaxed);
    lines_[rank_].shown.store(1, std::memory_order_seq_cst);
  }

 private:
  const std::atomic<std::uint32_t>* banned_ = nullptr;
  WindowLine* lines_ = nullptr;
  std::atomic<std::uint32_t>* visits_ = nullptr;
  std::uint64_t rank_ = 0;
  std::uint64_t row_ = 0;
};

}  // namespace unisono::shm
