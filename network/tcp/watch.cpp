#include "network/tcp/watch.hpp"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::tcp {

Watch::Watch()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!epoll_.valid() || !timer_.valid()) {
    throw Error(ErrorCode::kBootstrap,
                formatted("the system gives no descriptor to wait on: {}", text_of_error(errno)));
  }
  set(timer_.get(), kTimer, EPOLLIN, timer_known_);
}

void Watch::set(int socket, std::uint64_t tag, std::uint32_t events, std::uint32_t& known) {
  if (events == known) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  const int operation = known == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  if (epoll_ctl(epoll_.get(), operation, socket, &event) != 0 && events != 0) {
    throw Error(ErrorCode::kOutOfMemory, formatted("the system cannot watch a connection: {}", text_of_error(errno)));
  }
  known = events;
}

std::span<const epoll_event> Watch::ready() {
  const int count = epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), 0);
  return {events_.data(), static_cast<std::size_t>(std::max(count, 0))};
}

void Watch::set_timer(Clock::time_point at) {
  if (at == set_to_) return;
  set_to_ = at;
  itimerspec when{};
  if (at != Clock::time_point::max()) {
    // Zero would mean never.
    const auto since = std::max<std::chrono::nanoseconds>(at.time_since_epoch(), std::chrono::nanoseconds(1));
    when.it_value.tv_sec = since / std::chrono::seconds(1);
    when.it_value.tv_nsec = (since % std::chrono::seconds(1)).count();
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace unisono::tcp
