#include "network/udp/congestion.hpp"

#include <algorithm>
#include <cmath>

namespace unisono::udp {

Congestion::Congestion(std::size_t datagram, std::size_t most)
    : datagram_(datagram),
      most_(std::max(most, 2 * datagram)),
      window_(std::min(std::max<std::size_t>(10 * std::min<std::size_t>(datagram, 1472), 4 * datagram), most_)),
      threshold_(most_) {}

void Congestion::acknowledged(std::size_t bytes, std::size_t datagrams, bool used, Span round_trip, Time now) {
  borne_ = std::min(kMostBorne, borne_ + kBorne * static_cast<double>(datagrams));
  if (!used) return;
  if (slow_start()) {
    window_ = std::min(window_ + bytes, most_);
  } else {
    grow(bytes, round_trip, now);
  }
}

void Congestion::grow(std::size_t bytes, Span round_trip, Time now) {
  const auto datagram = static_cast<double>(datagram_);
  const double window = static_cast<double>(window_) / datagram;
  if (!shrunk_) {
    // Its begin was cut short by the most that it may be.
    shrunk_ = true;
    shrunk_at_ = now;
    largest_ = plain_ = window;
  }
  const double since = std::chrono::duration<double>(now - shrunk_at_ + round_trip).count();
  const double turn = std::cbrt(largest_ * (1 - kShrink) / kGrowth);
  const double cubic = largest_ + kGrowth * std::pow(since - turn, 3);
  plain_ += 3 * (1 - kShrink) / (1 + kShrink) * (static_cast<double>(bytes) / datagram) / window;
  const double goal = std::clamp(std::max(cubic, plain_), window, 1.5 * window);
  // Towards the goal within a round trip.
  parts_ += (goal - window) / window * static_cast<double>(bytes);
  const auto whole = static_cast<std::size_t>(parts_);
  parts_ -= static_cast<double>(whole);
  window_ = std::min(window_ + whole, most_);
}

void Congestion::lost(Time sent, Time now) {
  if (borne_ >= 1) {
    borne_ -= 1;
    return;
  }
  if (shrunk_ && sent <= shrunk_at_) {
    ++losses_;
    return;
  }
  before_window_ = window_;
  before_threshold_ = threshold_;
  losses_ = 1;
  shrunk_ = true;
  shrunk_at_ = now;
  largest_ = static_cast<double>(window_) / static_cast<double>(datagram_);
  window_ = std::max(static_cast<std::size_t>(kShrink * static_cast<double>(window_)), std::min(least(), most_));
  threshold_ = window_;
  plain_ = static_cast<double>(window_) / static_cast<double>(datagram_);
}

void Congestion::found() {
  borne_ = std::min(kMostBorne, borne_ + 1);
  if (losses_ == 0 || --losses_ != 0) return;
  // Nothing was lost: they had overtaken each other.
  window_ = std::max(window_, before_window_);
  threshold_ = std::max(threshold_, before_threshold_);
}

}  // namespace unisono::udp
