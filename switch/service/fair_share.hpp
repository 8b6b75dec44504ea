// Whose datagrams a worker throws away while more come than it can take.
//
// Datagrams of all jobs wait in one queue of the system, and who sends most fills it, so that those of others are lost.
// While that happens, a job's datagrams beyond its part of what comes are thrown away: its members repeat them later,
// and less often each time, which lets the queue empty. A job that stays within its part loses nothing by that, and
// nobody does while the queue is not full.
#pragma once

#include <cstdint>
#include <vector>

#include "switch/control.hpp"

namespace unisono::slots {

/// Not thread-safe. Allocates when a job comes only.
class FairShare {
 public:
  /// Datagrams over which parts are reckoned.
  static constexpr std::uint32_t kRound = 1024;

  /// A job has one more pool here; what names it in `takes`.
  std::uint32_t enter(const PoolId& job);
  /// And one less.
  void leave(std::uint32_t share);
  /// Whether the system has lost datagrams of late.
  void press(bool pressed) { pressed_ = pressed; }
  /// Whether the next datagram, of such a job, is to be taken.
  bool takes(std::uint32_t share);

 private:
  struct Share {
    PoolId job{};
    std::uint32_t pools = 0;
    std::uint32_t came = 0;  ///< in this round
    std::uint32_t taken = 0;
  };
  void begin_round();

  std::vector<Share> shares_;
  std::uint32_t came_ = 0;  ///< in this round
  std::uint32_t most_ = ~std::uint32_t{0};
  bool pressed_ = false;
};

}  // namespace unisono::slots
