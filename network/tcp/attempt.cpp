#include "network/tcp/attempt.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/text.hpp"
#include "network/tcp/shortage.hpp"

namespace unisono::tcp {

namespace {

/// A peer that is slow, or besieged by strangers, may close a connection that has not been proven; then it is tried
/// again, so many times, and after so long.
constexpr int kMostInterruptions = 50;
constexpr std::chrono::milliseconds kBetweenInterruptions{100};

}  // namespace

Attempt::Attempt(std::vector<Address> addresses, const std::vector<OwnAddress>& own, std::chrono::milliseconds patience)
    : patience_(patience) {
  for (Address& address : addresses) {
    const bool ours = address.loopback() || std::any_of(own.begin(), own.end(), [&](const OwnAddress& one) {
                        return one.address.six == address.six && one.address.bytes == address.bytes;
                      });
    const unsigned scope = address.link_local() ? scope_for(address, own) : 0;
    tries_.push_back({std::move(address), scope});
    tries_.back().ours = ours;
  }
}

void Attempt::hang_up(Try& one, Watch& watch) {
  if (!one.socket.valid()) return;
  watch.set(one.socket.get(), 0, 0, one.watched);
  shutdown(one.socket.get(), SHUT_RDWR);
  one.socket.reset();
  one.connector.reset();
}

void Attempt::fail(Try& one, Watch& watch, std::string fault) {
  hang_up(one, watch);
  one.stage = Stage::kFailed;
  one.fault = std::move(fault);
}

void Attempt::fail_to_connect(Try& one, Watch& watch, int error) {
  one.refused = error == ECONNREFUSED;
  one.no_way = error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN || error == ETIMEDOUT;
  fail(one, watch, text_of_error(error));
}

/// If all have failed: whether those to which there is no way are to be tried again. A host whose kernel has refused
/// can be reached, so nothing is waited for.
bool Attempt::await_ways(Clock::time_point now) {
  if (now - begin_ >= patience_) return false;
  if (std::any_of(tries_.begin(), tries_.end(), [](const Try& one) { return one.refused && !one.ours; })) return false;
  bool some = false;
  for (Try& one : tries_) {
    if (!one.no_way) continue;
    one.stage = Stage::kWaiting;
    one.not_before = now + kBetweenTries;
    some = true;
  }
  return some;
}

void Attempt::interrupted(Try& one, Watch& watch, Clock::time_point now) {
  if (++one.interruptions >= kMostInterruptions) return fail(one, watch, "closed the connection before it was proven");
  hang_up(one, watch);
  one.stage = Stage::kWaiting;
  one.not_before = now + kBetweenInterruptions;
}

bool Attempt::starved(Try& one, int error, Watch& watch, Clock::time_point now) {
  const SystemAddress address = system_address(one.address, one.scope);
  std::string lacks = shortage(error, *address.get(), address.bytes);
  if (lacks.empty()) return false;
  hang_up(one, watch);
  one.stage = Stage::kWaiting;
  one.not_before = now + kBetweenInterruptions;
  obstacle_ = std::move(lacks);
  return true;
}

void Attempt::start(Try& one, const Surroundings& around, Clock::time_point now) {
  const SystemAddress address = system_address(one.address, one.scope);
  one.socket = Socket(socket(address.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!one.socket.valid()) {
    const int error = errno;
    if (!starved(one, error, around.watch, now)) fail(one, around.watch, text_of_error(error));
    return;
  }
  set_options(one.socket);
  one.stage = Stage::kConnecting;
  one.since = now;
  if (connect(one.socket.get(), address.get(), address.bytes) != 0 && errno != EINPROGRESS && errno != EINTR) {
    const int error = errno;
    if (!starved(one, error, around.watch, now)) fail_to_connect(one, around.watch, error);
    return;
  }
  obstacle_.clear();
  around.watch.set(one.socket.get(), around.tag, EPOLLOUT, one.watched);
}

void Attempt::connect_on(Try& one, const Surroundings& around, Clock::time_point now) {
  pollfd ask{one.socket.get(), POLLOUT, 0};
  if (::poll(&ask, 1, 0) != 1) {
    if (now - one.since >= std::max(kPatience, patience_)) {
      fail(one, around.watch, formatted("no answer within {} ms", std::max(kPatience, patience_).count()));
    }
    return;
  }
  int fault = 0;
  socklen_t bytes = sizeof fault;
  getsockopt(one.socket.get(), SOL_SOCKET, SO_ERROR, &fault, &bytes);
  if (fault != 0) return fail_to_connect(one, around.watch, fault);
  Nonce nonce;
  fill_random(nonce);
  one.connector.emplace(around.key, around.ends, nonce);
  one.stage = Stage::kGreeting;
  one.since = now;
}

Attempt::Result Attempt::greet(std::size_t index, const Surroundings& around, Clock::time_point now) {
  Try& one = tries_[index];
  Connector& connector = *one.connector;
  for (;;) {
    while (!connector.output().empty()) {
      const auto output = connector.output();
      const ssize_t sent = send(one.socket.get(), output.data(), output.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (sent < 0) {
        if (chosen_ == index) chosen_.reset();
        interrupted(one, around.watch, now);
        return Result::kUnderWay;
      }
      connector.sent(static_cast<std::size_t>(sent));
    }
    switch (connector.state()) {
      case Connector::State::kAccepted:
        return Result::kOpen;
      case Connector::State::kDuplicate:
        return Result::kDuplicate;
      case Connector::State::kFailed: {
        if (chosen_ == index) chosen_.reset();
        if (connector.final()) final_fault_ = connector.fault();
        const std::string fault = connector.fault();
        fail(one, around.watch, fault);
        return final_fault_.empty() ? Result::kUnderWay : Result::kFailed;
      }
      case Connector::State::kChallenged:
        chosen_ = index;
        for (Try& other : tries_) {
          if (&other == &one || !other.socket.valid()) continue;
          hang_up(other, around.watch);
          other.stage = Stage::kWaiting;
        }
        connector.prove();
        continue;
      default:
        break;
    }
    const auto wanted = connector.wanted();
    const ssize_t got = recv(one.socket.get(), wanted.data(), wanted.size(), MSG_DONTWAIT);
    if (got > 0) {
      connector.got(static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      const std::uint32_t events = connector.output().empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
      around.watch.set(one.socket.get(), around.tag, events, one.watched);
      return Result::kUnderWay;
    }
    if (chosen_ == index) chosen_.reset();
    interrupted(one, around.watch, now);
    return Result::kUnderWay;
  }
}

Attempt::Result Attempt::advance(const Surroundings& around, Clock::time_point now) {
  if (begin_ == Clock::time_point{}) begin_ = now;
  // An address that has just failed makes way for the next one.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < tries_.size(); ++i) {
      Try& one = tries_[i];
      const Stage before = one.stage;
      if (one.stage == Stage::kConnecting) connect_on(one, around, now);
      if (one.stage == Stage::kGreeting) {
        const Result result = greet(i, around, now);
        if (result != Result::kUnderWay) return result;
      }
      changed = changed || one.stage != before;
    }
    if (chosen_) return Result::kUnderWay;
    Clock::time_point next = now;
    for (const Try& one : tries_) {
      if (one.stage == Stage::kConnecting) next = std::max(next, one.since + kHeadStart);
      if (one.stage == Stage::kGreeting) next = std::max(next, one.since + kLongHeadStart);
    }
    if (next > now) continue;
    for (Try& one : tries_) {
      if (one.stage != Stage::kWaiting || one.not_before > now) continue;
      start(one, around, now);
      changed = true;
      break;
    }
  }
  const bool all_failed =
      std::all_of(tries_.begin(), tries_.end(), [](const Try& one) { return one.stage == Stage::kFailed; });
  return all_failed && !await_ways(now) ? Result::kFailed : Result::kUnderWay;
}

Attempt::Clock::time_point Attempt::deadline() const {
  if (chosen_) return Clock::time_point::max();
  Clock::time_point first = Clock::time_point::max();
  Clock::time_point waiting = Clock::time_point::max();  // until the next one may begin for its own sake
  Clock::time_point next{};                              // until it may for the sake of those under way
  for (const Try& one : tries_) {
    if (one.stage == Stage::kConnecting) {
      first = std::min(first, one.since + std::max(kPatience, patience_));
      next = std::max(next, one.since + kHeadStart);
    }
    if (one.stage == Stage::kGreeting) next = std::max(next, one.since + kLongHeadStart);
    if (one.stage == Stage::kWaiting) waiting = std::min(waiting, one.not_before);
  }
  return std::min(first, std::max(waiting, next));
}

bool Attempt::refused() const {
  return std::all_of(tries_.begin(), tries_.end(), [](const Try& one) { return one.refused; });
}

std::string Attempt::outcome() const {
  std::string text;
  for (const Try& one : tries_) {
    if (!text.empty()) text += "; ";
    text += text_of(one.address) + ": " + (one.fault.empty() ? "not answered" : one.fault);
  }
  return text;
}

Socket Attempt::take(Watch& watch) {
  Try& one = tries_[*chosen_];
  watch.set(one.socket.get(), 0, 0, one.watched);
  return std::move(one.socket);
}

void Attempt::close(Watch& watch) {
  for (Try& one : tries_) hang_up(one, watch);
}

}  // namespace unisono::tcp
