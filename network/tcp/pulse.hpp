// Whether the host at the other end of a connection is still there.
#pragma once

#include <chrono>

#include "network/tcp/address.hpp"
#include "network/tcp/question.hpp"
#include "network/tcp/socket.hpp"

namespace unisono::tcp {

/// Judges one connection. A host that has vanished acknowledges nothing; but a process that is stopped may look the
/// same, for its kernel drops what it has no memory for, without a word. So a host that is silent is asked something
/// that its kernel answers by itself: to connect to the port on which its process listens, or listened.
class Pulse {
 public:
  using Clock = std::chrono::steady_clock;

  /// `listener` is where the peer listens, at the address that the connection has.
  void begin(const Address& listener) { listener_ = listener; }
  /// Whether what was sent, and what was asked, has been without any answer for longer than `patience`. Looks at most
  /// every 250 ms; between, it gives false.
  bool gone(const Socket& connection, Clock::time_point now, std::chrono::milliseconds patience);

 private:
  /// Whether the question was answered, by whatever.
  bool answered() const;

  Address listener_;
  Clock::time_point looked_{};
  Clock::time_point unanswered_since_{};
  bool unanswered_ = false;
  Question question_;
};

}  // namespace unisono::tcp
