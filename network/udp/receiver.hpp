// The receiving end of a session: what has come, and what to say of it. No sockets and no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "network/poe.hpp"
#include "network/udp/ack_window.hpp"
#include "network/udp/frames.hpp"
#include "network/udp/in_stream.hpp"
#include "network/udp/round_trip.hpp"

namespace unisono::udp {

/// Takes datagrams whose tags were verified.
class Receiver {
 public:
  Receiver(std::size_t ring_bytes, std::size_t control_bytes);

  /// True if a message is whole now that was not before. A datagram that has come before changes nothing.
  bool take(const DataFrame& frame, std::span<const std::byte> piece, Time now);
  bool peek(Lane lane, Incoming& incoming) { return streams_[index_of(lane)].peek(incoming); }
  /// See Poe::release. The peer may have to be told that there is room.
  void release(Lane lane);
  /// What is wrong with a lane's stream; empty if nothing.
  const std::string& fault(Lane lane) const { return streams_[index_of(lane)].fault(); }

  /// Whether something is to be said now, if there is nothing better to do.
  bool ack_due(Time now) const {
    return at_once_ || (unsaid_ >= 2 && unsaid_bytes_ >= kMostUnsaidBytes) || ack_at_ <= now;
  }
  /// Whether what is due is to be said even before somebody is given what has come.
  bool ack_presses(Time now) const { return at_once_ || unsaid_ >= kMostUnsaid || ack_at_ <= now; }
  Time deadline() const { return at_once_ ? Time::min() : ack_at_; }
  /// Something is to be said in any case.
  void ask() { at_once_ = true; }
  /// What is to be said; but for source and tag. Then it was.
  AckFrame ack(Time now);
  std::uint64_t repeated() const { return repeated_; }

 private:
  /// Two datagrams on any path, or as many short ones: an acknowledgement costs as much as a datagram.
  static constexpr std::size_t kMostUnsaidBytes = 2304;
  static constexpr unsigned kMostUnsaid = 8;

  AckWindow window_;
  InStream streams_[kLanes];
  std::size_t step_[kLanes];  ///< room of so many bytes more is worth telling
  std::uint64_t told_[kLanes]{};
  std::uint64_t number_ = 0;
  Time largest_at_{};
  unsigned unsaid_ = 0;  ///< datagrams
  std::size_t unsaid_bytes_ = 0;
  bool at_once_ = false;
  Time ack_at_ = Time::max();
  std::uint64_t repeated_ = 0;
};

}  // namespace unisono::udp
