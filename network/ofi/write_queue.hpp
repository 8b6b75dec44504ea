// Writes to a peer's memory that were begun and are not over.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/generated/spec.hpp"
#include "network/ofi/registrations.hpp"
#include "network/reach.hpp"

namespace unisono::ofi {

/// Writes of one session at once, and pieces of them that are with the provider: enough that it never waits for more,
/// and few, for messages go behind them.
inline constexpr std::size_t kMostWrites = 64;
inline constexpr std::uint32_t kMostPieces = 4;
inline constexpr std::uint64_t kLongestPiece = std::uint64_t{1} << 20U;

struct Write {
  Ticket ticket = 0;
  std::uint64_t address = 0;  ///< at the peer
  std::uint64_t key = 0;
  const std::byte* from = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t posted = 0;  ///< of these, with the provider or written
  std::uint32_t pieces = 0;  ///< with the provider
  bool dropped = false;      ///< no more goes, and no message
  bool withdrawn = false;    ///< its owner wants its memory back
  bool announced = false;    ///< the message that all was written is on its way
  bool over = true;
  std::optional<Registrations::Lease> source;  ///< where the provider wants one
  Header done;
};

/// Has memory from the first write on.
class WriteQueue {
 public:
  bool empty() const { return first_ == next_; }
  bool full() const { return next_ - first_ == kMostWrites; }
  /// Only if it is not full.
  Write& begin() {
    if (writes_.empty()) writes_.resize(kMostWrites);
    Write& write = writes_[next_ % kMostWrites];
    write = Write{};
    write.ticket = next_++;
    write.over = false;
    return write;
  }
  /// Whether a ticket was given out and its write is over.
  bool over(Ticket ticket) const { return ticket < first_ || ticket >= next_ || writes_[ticket % kMostWrites].over; }
  /// Of a ticket whose write is not over.
  Write& at(Ticket ticket) { return writes_[ticket % kMostWrites]; }
  /// Forgets the oldest ones that are over.
  void trim() {
    while (first_ != next_ && writes_[first_ % kMostWrites].over) ++first_;
  }
  /// Those that are not over, the oldest first; until `visit` gives false.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (Ticket ticket = first_; ticket != next_; ++ticket) {
      Write& write = at(ticket);
      if (!write.over && !visit(write)) return;
    }
  }
  /// Whether pieces with this key are with the provider.
  bool writes_with(std::uint64_t key) const {
    return std::any_of(writes_.begin(), writes_.end(),
                       [&](const Write& write) { return !write.over && write.key == key && write.pieces != 0; });
  }

 private:
  std::vector<Write> writes_;
  Ticket first_ = 1;
  Ticket next_ = 1;
};

}  // namespace unisono::ofi
