#include "network/ofi/alarm.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::ofi {

namespace {

/// Longer than what comes back in answer takes as a rule; asking for a sleep takes about a microsecond.
constexpr std::chrono::microseconds kQuiet{20};
constexpr std::chrono::microseconds kShortestNap{100};
constexpr std::chrono::microseconds kLongestNap{2000};

}  // namespace

Alarm::Alarm(int provider) : bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), has_provider_(provider >= 0) {
  if (!bell_.valid()) {
    throw Error(ErrorCode::kBootstrap,
                formatted("the system gives no descriptor to wait on: error {} of eventfd", errno));
  }
  nap_ = kShortestNap;
  watch_.set(bell_.get(), 1, EPOLLIN, bell_known_);
  if (has_provider_) watch_.set(provider, 2, EPOLLIN, provider_known_);
  rouse();
}

void Alarm::rouse() {
  settled_ = false;
  quiet_since_ = {};
  nap_ = kShortestNap;
  if (rung_) return;
  const std::uint64_t one = 1;
  rung_ = write(bell_.get(), &one, sizeof one) == sizeof one;
}

bool Alarm::quiet(bool at_once) {
  if (settled_ && until_ == Clock::time_point::max()) return false;
  const Clock::time_point now = Clock::now();
  if (settled_) {
    if (now < until_) return false;
    nap_ = std::min<Clock::duration>(2 * nap_, kLongestNap);
    return true;
  }
  if (at_once) return true;
  if (quiet_since_ == Clock::time_point{}) quiet_since_ = now;
  return now - quiet_since_ >= kQuiet;
}

void Alarm::settle(bool may_sleep, Clock::time_point until) {
  if (!may_sleep) {
    if (settled_) rouse();
    return;
  }
  if (!has_provider_) until = std::min(until, Clock::now() + nap_);
  until_ = until;
  watch_.set_timer(until_);
  settled_ = true;
  if (!rung_) return;
  std::uint64_t rings = 0;
  rung_ = read(bell_.get(), &rings, sizeof rings) != sizeof rings;
}

}  // namespace unisono::ofi
