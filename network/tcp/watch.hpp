// Sockets that a sleeper is to be woken by.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <span>

#include "network/tcp/socket.hpp"

namespace unisono::tcp {

/// An epoll descriptor, with a timer in it.
class Watch {
 public:
  using Clock = std::chrono::steady_clock;
  /// Throws Error(kBootstrap).
  Watch();

  int descriptor() const { return epoll_.get(); }
  /// Watches `socket` for `events` from now on, or no more if there are none; `known` is what it was watched for, and
  /// is updated. Must end before the socket is closed: a child of fork may keep it open.
  void set(int socket, std::uint64_t tag, std::uint32_t events, std::uint32_t& known);
  /// What is ready now.
  std::span<const epoll_event> ready();
  /// Polls as readable from then on; time_point::max() means never.
  void set_timer(Clock::time_point at);
  /// The tag of the timer.
  static constexpr std::uint64_t kTimer = ~std::uint64_t{0};

 private:
  Socket epoll_;
  Socket timer_;
  std::uint32_t timer_known_ = 0;
  Clock::time_point set_to_ = Clock::time_point::max();
  std::array<epoll_event, 64> events_{};
};

}  // namespace unisono::tcp
