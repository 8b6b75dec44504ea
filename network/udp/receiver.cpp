#include "network/udp/receiver.hpp"

#include <algorithm>

namespace unisono::udp {

Receiver::Receiver(std::size_t ring_bytes, std::size_t control_bytes)
    : streams_{InStream(kMaxPayload[0], ring_bytes), InStream(kMaxPayload[1], control_bytes)},
      step_{ring_bytes / 8, control_bytes / 4} {}

bool Receiver::take(const DataFrame& frame, std::span<const std::byte> piece, Time now) {
  if (window_.has(frame.number)) {
    ++repeated_;
    return false;
  }
  const std::size_t lane = frame.lane;
  if (lane >= kLanes || frame.offset % kWord != 0 || piece.size() % kWord != 0) return false;
  InStream& stream = streams_[lane];
  const std::uint64_t before = stream.messages();
  const bool had_gap = stream.has_gap();
  if (!piece.empty() && !stream.place(frame.offset, piece)) return false;
  const bool next = window_.add(frame.number);
  if (window_.largest() == frame.number) largest_at_ = now;
  ++unsaid_;
  unsaid_bytes_ += piece.size();
  if (!next || piece.empty() || (had_gap && !stream.has_gap())) at_once_ = true;
  ack_at_ = std::min(ack_at_, now + RoundTrip::kAckDelay);
  return stream.messages() != before || !stream.fault().empty();
}

void Receiver::release(Lane lane) {
  const std::size_t index = index_of(lane);
  streams_[index].release();
  if (streams_[index].limit() - told_[index] >= step_[index]) at_once_ = true;
}

AckFrame Receiver::ack(Time now) {
  AckFrame frame;
  frame.number = ++number_;
  frame.largest = window_.largest();
  frame.before = window_.before();
  for (std::size_t lane = 0; lane < kLanes; ++lane) frame.limits[lane] = told_[lane] = streams_[lane].limit();
  const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(now - largest_at_).count();
  frame.delay_us = unsaid_ == 0 ? 0 : static_cast<std::uint32_t>(std::clamp<std::int64_t>(waited, 0, 1'000'000));
  unsaid_ = 0;
  unsaid_bytes_ = 0;
  at_once_ = false;
  ack_at_ = Time::max();
  return frame;
}

}  // namespace unisono::udp
