// What has come on one lane of a session.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/text.hpp"
#include "network/ofi/block_pool.hpp"
#include "network/ofi/frame.hpp"
#include "network/ofi/outbox.hpp"

namespace unisono::ofi {

/// Puts messages in order: a provider delivers them in order, but may tell of a short one before it tells of a long one
/// that began earlier. Holds no more than the window allows, whatever comes.
class Inbox {
 public:
  /// What is wrong with a message of this number; empty if it can be put.
  std::string refusal(std::uint32_t sequence, bool large) const {
    const std::uint32_t ahead = (sequence - released_) & kSequenceMask;
    if (ahead >= kWindow) {
      return formatted("message {} came, and only {} to {} may", sequence, released_ & kSequenceMask,
                       (released_ + kWindow - 1) & kSequenceMask);
    }
    if (blocks_[(released_ + ahead) % kWindow] != nullptr) return formatted("message {} came twice", sequence);
    if (large && large_ == kLargeWindow) return formatted("more than {} large messages came", kLargeWindow);
    return {};
  }
  /// Only if it was not refused.
  void put(std::uint32_t sequence, Block* block) {
    blocks_[(released_ + ((sequence - released_) & kSequenceMask)) % kWindow] = block;
    if (block->large) ++large_;
    ++came_;
  }
  /// The oldest that was not released; null if it has not come.
  Block* first() const { return blocks_[released_ % kWindow]; }
  /// Takes it out.
  Block* release() {
    Block* const block = blocks_[released_ % kWindow];
    blocks_[released_ % kWindow] = nullptr;
    ++released_;
    if (block->large) {
      --large_;
      ++large_unreported_;
    }
    return block;
  }

  /// Messages that were ever put.
  std::uint32_t came() const { return came_; }
  /// Messages that were ever released, as they are reported to the peer.
  std::uint32_t released() const { return released_; }
  /// Whether the peer may wait for that report.
  bool owes() const { return released_ - reported_ >= kWindow / 4 || large_unreported_ >= kLargeWindow / 4; }
  void reported() {
    reported_ = released_;
    large_unreported_ = 0;
  }

 private:
  std::array<Block*, kWindow> blocks_{};
  std::uint32_t released_ = 0;
  std::uint32_t came_ = 0;
  std::uint32_t large_ = 0;  ///< that are held
  std::uint32_t reported_ = 0;
  std::uint32_t large_unreported_ = 0;
};

}  // namespace unisono::ofi
