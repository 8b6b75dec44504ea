// The descriptor on which one sleeps until the provider may have something.
#pragma once

#include <chrono>
#include <cstdint>

#include "network/tcp/socket.hpp"
#include "network/tcp/watch.hpp"

namespace unisono::ofi {

/// A provider's descriptor tells of what comes only after it was asked whether one may sleep, which takes long. So that
/// is asked only after some quiet; until then the descriptor here is readable, and a thread that would sleep looks
/// again. Where the provider has no descriptor, a timer ends every sleep; the longer nothing comes, the later.
class Alarm {
 public:
  using Clock = std::chrono::steady_clock;
  /// `provider`: its descriptor, or -1. Throws Error(kBootstrap).
  explicit Alarm(int provider);

  int descriptor() const { return watch_.descriptor(); }
  /// Something has come, or there is more to do: nobody may sleep.
  void rouse();
  /// Nothing has come. `at_once`: no quiet is needed before a sleep. True if `may_sleep` is to be asked: the answer
  /// goes to `settle`.
  bool quiet(bool at_once);
  /// `until`: when somebody must look again in any case.
  void settle(bool may_sleep, Clock::time_point until);
  /// Whether what comes wakes a thread that sleeps now.
  bool settled() const { return settled_; }
  /// When the sleep ends in any case.
  Clock::time_point until() const { return until_; }

 private:
  tcp::Watch watch_;
  tcp::Socket bell_;
  std::uint32_t bell_known_ = 0;
  std::uint32_t provider_known_ = 0;
  bool has_provider_;
  bool settled_ = false;
  bool rung_ = false;
  Clock::time_point quiet_since_{};
  Clock::time_point until_ = Clock::time_point::max();
  Clock::duration nap_;
};

}  // namespace unisono::ofi
