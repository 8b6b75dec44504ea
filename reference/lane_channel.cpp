#include "reference/lane_channel.hpp"

#include <algorithm>
#include <utility>

#include "core/text.hpp"

namespace unisono::reference {

LaneChannel::LaneChannel(const ChannelKind& kind, std::uint64_t segment, Depart depart)
    : Channel(kind, segment, std::move(depart)), free_(kind.lines) {}

std::uint64_t LaneChannel::room(std::uint64_t done, std::uint64_t length) {
  return free_ == 0 ? 0 : std::min(length - done, segment_);
}

std::string LaneChannel::awaited() const { return "a free line"; }

void LaneChannel::leaves(Segment& /*segment*/) { --free_; }

std::optional<ChannelFault> LaneChannel::notified(const Notice& notice) {
  free_ += notice.freed;
  return std::nullopt;
}

std::optional<ChannelFault> LaneChannel::arrived(const Segment& segment) {
  if (++holds_ <= kind_.lines) return std::nullopt;
  return overflow(formatted("a segment of message {} came where all {} lines were full", segment.message, kind_.lines));
}

void LaneChannel::segment_taken() {
  --holds_;
  give_back({1, 0, 0});
}

std::optional<ChannelFault> LaneChannel::unbalanced() const {
  if (free_ == kind_.lines) return std::nullopt;
  return overflow(formatted("{} of {} lines are free when all has ended", free_, kind_.lines));
}

}  // namespace unisono::reference
