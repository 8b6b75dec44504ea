// How much may be on its way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "network/udp/round_trip.hpp"

namespace unisono::udp {

/// A window that grows as that of CUBIC (RFC 9438: Ha, Rhee and Xu, 2008), and shrinks to 0.7 of itself, once a round
/// trip, where more is lost than a datagram in fifty; less is taken for the path's own losses and borne, as BBR (v2)
/// does. All of it depends on what it is told, and on no clock.
class Congestion {
 public:
  /// `datagram` is how many bytes a datagram carries, `most` how large the window may become.
  Congestion(std::size_t datagram, std::size_t most);

  std::size_t window() const { return window_; }
  bool slow_start() const { return window_ < threshold_; }
  void set_datagram(std::size_t bytes) { datagram_ = bytes; }

  /// `bytes` in `datagrams` have come. `used`: the window, and nothing else, held the sender back.
  void acknowledged(std::size_t bytes, std::size_t datagrams, bool used, Span round_trip, Time now);
  /// A datagram that was sent at `sent` is thought to be lost.
  void lost(Time sent, Time now);
  /// One that was thought to be lost has come.
  void found();

 private:
  static constexpr double kShrink = 0.7;
  static constexpr double kGrowth = 0.4;  ///< C of CUBIC: datagrams per second cubed
  static constexpr double kBorne = 1.0 / 50;
  static constexpr double kMostBorne = 4;

  std::size_t least() const { return 2 * datagram_; }
  void grow(std::size_t bytes, Span round_trip, Time now);

  std::size_t datagram_;
  std::size_t most_;
  std::size_t window_;
  std::size_t threshold_;
  double borne_ = 2;  ///< losses that will be borne
  Time shrunk_at_{};
  bool shrunk_ = false;
  double largest_ = 0;  ///< window before it shrank, in datagrams
  double plain_ = 0;    ///< what Reno would have by now, in datagrams
  double parts_ = 0;    ///< bytes of growth that are no whole one yet
  std::size_t before_window_ = 0, before_threshold_ = 0;
  unsigned losses_ = 0;  ///< for which it shrank, less those found
};

}  // namespace unisono::udp
