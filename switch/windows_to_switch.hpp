// What the windows of one process may have on their way to one switch, all together (docs/switch-protocol.md, "How much
// is on its way").
#pragma once

#include <algorithm>
#include <cstdint>

#include "network/udp/round_trip.hpp"

namespace unisono::slots {

using udp::Span;
using udp::Time;

/// A job with many communicators shall have no larger part of a link than one with one, and none shall fill the queues
/// before a link. So windows share their turns, and there are fewer of these while all that goes must queue, as in
/// delay-based control of congestion (Swift, SIGCOMM 2020): a little more with each round in which nothing queues for
/// long, and at most half as many if it does. All processes at a queue see the same of it, so their parts become alike.
///
/// Not thread-safe: one thread at a time.
class WindowsToSwitch {
 public:
  /// A queue may make a turn so much later than the quickest.
  static constexpr Span kQueue = std::chrono::milliseconds(4);
  /// There are always so many turns of 64.
  static constexpr std::uint32_t kLeast = 8;

  /// Of `slots` turns, how many each window may have on their way; at least 1.
  std::uint32_t each(std::uint32_t slots) const {
    if (allowed_ == kAll && busy_ < 2) return slots;
    return std::max(slots * allowed_ / (kAll * std::max(busy_, 1U)), 1U);
  }
  /// One more window, or one less, has turns on their way.
  void busy(bool more) { busy_ += more ? 1U : ~0U; }

  /// A frame has come, which says how long frames are on their way there and back.
  void measured(Span path, Time now);
  /// A turn is answered. `again`: it went more than twice, so that it was lost, and is not only late.
  void answered(bool again);

  /// Of 64 turns, how many all windows together may have on their way.
  std::uint32_t allowed() const { return allowed_ * kScale / kAll; }

 private:
  static constexpr std::uint32_t kScale = 64;
  /// In steps of a 64th of a turn, of 64 turns.
  static constexpr std::uint32_t kAll = kScale * kScale;
  /// Of fewer frames nothing is concluded: a process that had no core for a while makes a few of them late.
  static constexpr std::uint32_t kFew = 8;

  void conclude();

  std::uint32_t busy_ = 0;
  std::uint32_t allowed_ = kAll;
  Span quickest_ = Span::max();
  // Of this round, which lasts until something comes back that went in it.
  Time began_{};
  Span least_ = Span::max();
  std::uint32_t frames_ = 0;
  std::uint32_t turns_ = 0;
  std::uint32_t again_ = 0;
};

}  // namespace unisono::slots
