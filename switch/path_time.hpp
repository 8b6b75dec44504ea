// How long datagrams are on their way to a switch and back, whatever the switch waits for meanwhile
// (docs/switch-protocol.md, "How much is on its way").
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "network/udp/round_trip.hpp"

namespace unisono::slots {

using udp::Span;
using udp::Time;

/// Microseconds of the sender's own clock, which wrap, or 0: none. A member puts one into what it sends. The switch
/// gives the last one back, later by the time since that came: to the member's clock it says when a datagram would have
/// gone that has come back without a pause.
using Stamp = std::uint32_t;

inline Stamp stamp_of(Time time) {
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch());
  const auto stamp = static_cast<Stamp>(since.count());
  return stamp != 0 ? stamp : 1;
}

/// What a stamp that has come back says of the way. Nothing if there is none, or if it is of no use: it says an hour.
inline std::optional<Span> path_of(Stamp stamp, Time now) {
  const Stamp passed = stamp_of(now) - stamp;
  if (stamp == 0 || passed > Stamp{3'600'000'000U}) return std::nullopt;
  return std::chrono::microseconds(passed);
}

/// The switch's end, of one member.
class StampEcho {
 public:
  void take(Stamp stamp, Time now) {
    stamp_ = stamp;
    came_ = now;
  }
  /// What goes back now. `beyond` is the time that it takes to the switch above and back.
  Stamp back(Time now, Span beyond) const {
    if (stamp_ == 0) return 0;
    const auto more = std::chrono::duration_cast<std::chrono::microseconds>(now - came_ - beyond);
    const Stamp stamp = stamp_ + static_cast<Stamp>(more.count());
    return stamp != 0 ? stamp : 1;
  }

 private:
  Stamp stamp_ = 0;
  Time came_{};
};

}  // namespace unisono::slots
