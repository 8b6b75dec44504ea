// How an endpoint is woken that sleeps on descriptors, sockets of a network among them, and so not on its word.
#pragma once

#include <cstdint>

namespace unisono::shm {

/// A socket whose readiness says that somebody has rung. It has an abstract name made of a random number, so that peers
/// can ring without being handed anything but the number. Ringing does not block; a ring lasts until it is
/// cleared, so that none is lost, whenever the endpoint begins to sleep.
class Doorbell {
 public:
  /// Throws Error(kBootstrap) if the system gives no socket.
  Doorbell();
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  /// What peers ring by; never 0.
  std::uint64_t number() const { return number_; }
  /// Polls as readable when somebody has rung.
  int descriptor() const { return descriptor_; }
  void clear() const;

  /// Any thread. Best effort: without a socket to ring with, the endpoint wakes at its next look.
  static void ring(std::uint64_t number);

 private:
  std::uint64_t number_ = 0;
  int descriptor_ = -1;
};

}  // namespace unisono::shm
