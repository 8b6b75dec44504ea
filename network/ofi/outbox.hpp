// What one lane of a session has to send.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "network/ofi/block_pool.hpp"

namespace unisono::ofi {

/// Messages of a lane that were committed and that the receiver has not released yet, at most; of those, large ones.
/// This bounds what a receiver that takes nothing must hold: 64 messages, 16 of them large: about a megabyte.
inline constexpr std::uint32_t kWindow = 64;
inline constexpr std::uint32_t kLargeWindow = 16;
/// Payloads of more bytes are large.
inline constexpr std::uint32_t kSmallPayload = 1024;

/// Counts messages; the counts go round at 2^32.
class Outbox {
 public:
  bool has_room(std::uint32_t bytes) const {
    return committed_ - released_ < kWindow && (bytes <= kSmallPayload || large_ < kLargeWindow);
  }
  /// Messages that were ever committed: the number of the next one.
  std::uint32_t committed() const { return committed_; }
  void commit(Block* block, bool large) {
    blocks_[committed_ % kWindow] = block;
    is_large_[committed_ % kWindow] = large;
    if (large) ++large_;
    ++committed_;
  }
  /// The oldest that the provider does not have yet; null if there is none.
  Block* first() const { return posted_ == committed_ ? nullptr : blocks_[posted_ % kWindow]; }
  void posted() { ++posted_; }

  /// The receiver says how many it has ever released. False if that cannot be.
  bool released(std::uint32_t reported) {
    // What was said before may come after what was said later.
    if (static_cast<std::int32_t>(reported - released_) <= 0) return true;
    if (reported - released_ > posted_ - released_) return false;
    for (; released_ != reported; ++released_) {
      if (is_large_[released_ % kWindow]) --large_;
    }
    return true;
  }

 private:
  std::array<Block*, kWindow> blocks_{};
  std::bitset<kWindow> is_large_;
  std::uint32_t committed_ = 0;
  std::uint32_t posted_ = 0;
  std::uint32_t released_ = 0;
  std::uint32_t large_ = 0;  ///< of those that are not released
};

}  // namespace unisono::ofi
