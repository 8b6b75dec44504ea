// How long an answer takes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace unisono::udp {

using Time = std::chrono::steady_clock::time_point;
using Span = std::chrono::nanoseconds;

/// Smoothed round trip and its variation, as in RFC 6298, and the shortest one of late. Every datagram has a number of
/// its own, so no sample can be of another sending (the ambiguity that Karn's rule is for).
class RoundTrip {
 public:
  /// What a peer may wait before it acknowledges.
  static constexpr Span kAckDelay = std::chrono::milliseconds(1);
  /// Of clocks and sleeps.
  static constexpr Span kGrain = std::chrono::milliseconds(1);
  static constexpr Span kLongestTimeout = std::chrono::seconds(1);

  /// An answer came after `sample`, of which the peer waited `delay`.
  void add(Span sample, Span delay, Time now) {
    sample = std::max(sample, Span(1));
    if (least_ == Span::zero() || sample <= least_ || now - least_at_ > kMemory) {
      least_ = sample;
      least_at_ = now;
    }
    latest_ = sample;
    // A peer cannot make a round trip shorter than it was ever seen.
    if (sample - delay >= least_) sample -= delay;
    if (smoothed_ == Span::zero()) {
      smoothed_ = sample;
      variation_ = sample / 2;
      return;
    }
    const Span distance = smoothed_ > sample ? smoothed_ - sample : sample - smoothed_;
    variation_ = (3 * variation_ + distance) / 4;
    smoothed_ = (7 * smoothed_ + sample) / 8;
  }

  bool known() const { return smoothed_ != Span::zero(); }
  Span smoothed() const { return known() ? smoothed_ : kFirst; }
  Span variation() const { return known() ? variation_ : kFirst / 2; }
  Span least() const { return known() ? least_ : kFirst; }
  /// What was sent so long before something that has come is lost.
  Span reordering() const { return std::max(std::max(smoothed(), latest_) * 9 / 8, kGrain); }
  /// After so long without an answer the peer is asked for one, longer each time.
  Span timeout(unsigned asked) const { return timeout(asked, kGrain, kAckDelay); }
  /// The same of a peer that waits `delay` before it answers; what is on time may come `grain` later than usual.
  Span timeout(unsigned asked, Span grain, Span delay) const {
    const Span first = smoothed() + std::max(4 * variation(), grain) + delay;
    return std::min(first * (std::int64_t{1} << std::min(asked, 16U)), kLongestTimeout);
  }

 private:
  static constexpr Span kFirst = std::chrono::milliseconds(20);
  static constexpr Span kMemory = std::chrono::seconds(10);
  Span smoothed_{};
  Span variation_{};
  Span latest_{};
  Span least_{};
  Time least_at_{};
};

}  // namespace unisono::udp
