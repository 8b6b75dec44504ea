#include "network/tcp/listener.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "network/tcp/shortage.hpp"

namespace unisono::tcp {

namespace {

/// Newcomers that have proven nothing, beyond one for each member of the job.
constexpr std::size_t kMostStrangers = 64;
constexpr int kAcceptedAtOnce = 16;
/// Where the system has no descriptors left, it is asked again after so long.
constexpr std::chrono::milliseconds kPause{100};

}  // namespace

Listener::Listener(std::uint16_t first, std::uint16_t last) {
  const auto make = [](int family) { return Socket(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); };
  socket_ = make(AF_INET6);
  const int both = 0;
  six_ = socket_.valid() && setsockopt(socket_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof both) == 0;
  if (!six_) socket_ = make(AF_INET);
  if (!socket_.valid()) {
    throw Error(ErrorCode::kBootstrap, formatted("the system gives no socket: {}", text_of_error(errno)));
  }
  bind_to(first, last);
  if (listen(socket_.get(), 4096) != 0) {
    throw Error(ErrorCode::kBootstrap, formatted("cannot listen on port {}: {}", port_, text_of_error(errno)));
  }
  port_ = local_address(socket_.get()).port;
}

int Listener::try_bind(std::uint16_t port) {
  Address any;
  any.six = six_;
  any.port = port;
  const SystemAddress address = system_address(any, 0);
  return bind(socket_.get(), address.get(), address.bytes) == 0 ? 0 : errno;
}

void Listener::bind_to(std::uint16_t first, std::uint16_t last) {
  int fault = try_bind(first);
  if (fault == EADDRNOTAVAIL && six_) {
    // A host whose IPv6 is switched off.
    six_ = false;
    socket_ = Socket(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    fault = try_bind(first);
  }
  for (unsigned port = first; fault == EADDRINUSE && port < last;) fault = try_bind(static_cast<std::uint16_t>(++port));
  if (fault == 0) return;
  const std::string lacks = first == 0 ? shortage_of_ports(fault) : shortage(fault);
  if (!lacks.empty()) throw Error(ErrorCode::kBootstrap, formatted("nothing can be listened on: {}", lacks));
  throw Error(ErrorCode::kBootstrap, first == last ? formatted("port {} cannot be had: {}", first, text_of_error(fault))
                                                   : formatted("none of the ports {} to {} can be had: {}", first, last,
                                                               text_of_error(fault)));
}

void Listener::admit(const JobKey& key, Ends ends, SessionKeys sessions, std::vector<Address> own) {
  key_ = key;
  ends_ = ends;
  sessions_ = std::move(sessions);
  own_ = std::move(own);
}

void Listener::listen_with(Watch& watch, std::uint64_t tag) {
  tag_ = tag;
  watch.set(socket_.get(), tag_, EPOLLIN, watched_);
}

void Listener::accept_some(Watch& watch, Clock::time_point now) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    Socket socket(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        // Not watched meanwhile, or a sleeper would be woken again and again.
        paused_until_ = now + kPause;
        watch.set(socket_.get(), tag_, 0, watched_);
      }
      return;
    }
    set_options(socket);
    if (!own_.empty()) {
      Address here = local_address(socket.get());
      here.port = 0;
      if (std::find(own_.begin(), own_.end(), here) == own_.end()) {
        refuse(remote_address(socket.get()),
               formatted("came to {}, which is not of the interfaces to use", text_without_port(here)), now);
        continue;
      }
    }
    if (newcomers_.size() >= kMostStrangers + ends_.size) {
      refuse(newcomers_.begin(), "had not proven itself when others came", watch, now);
    }
    Nonce nonce;
    fill_random(nonce);
    const std::uint64_t number = next_number_++;
    Newcomer newcomer{std::move(socket), 0, Acceptor(key_, ends_, nonce, &sessions_), now};
    watch.set(newcomer.socket.get(), tag_ + number, EPOLLIN, newcomer.watched);
    newcomers_.emplace(number, std::move(newcomer));
  }
}

void Listener::close(Place place, Watch& watch) {
  Newcomer& newcomer = place->second;
  if (newcomer.socket.valid()) {
    watch.set(newcomer.socket.get(), 0, 0, newcomer.watched);
    shutdown(newcomer.socket.get(), SHUT_RDWR);
  }
  newcomers_.erase(place);
}

void Listener::refuse(const Address& from, const std::string& fault, Clock::time_point now) {
  refusals_.add();
  if (!logs(LogLevel::kWarn) || !refusals_.may_log(now)) return;
  log(LogLevel::kWarn, formatted("endpoint {} has refused a connection from {}: it {}; {} so far. Strangers can reach "
                                 "port {} of this host: keep them away, for instance by a firewall",
                                 ends_.self, text_of(from), fault, refusals_.count(), port_));
}

void Listener::refuse(Place place, const std::string& fault, Watch& watch, Clock::time_point now) {
  refuse(remote_address(place->second.socket.get()), fault, now);
  close(place, watch);
}

bool Listener::flush(Newcomer& newcomer) {
  // A handshake's few bytes always fit: an end that takes none is not worth waiting for.
  while (!newcomer.acceptor.output().empty()) {
    const auto output = newcomer.acceptor.output();
    const ssize_t sent = send(newcomer.socket.get(), output.data(), output.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    newcomer.acceptor.sent(static_cast<std::size_t>(sent));
  }
  return true;
}

void Listener::advance(std::uint64_t number, Watch& watch, Clock::time_point now, const Rule& rule, const Take& take) {
  const Place place = newcomers_.find(number);
  if (place == newcomers_.end()) return;
  Newcomer& newcomer = place->second;
  Acceptor& acceptor = newcomer.acceptor;
  for (;;) {
    const auto wanted = acceptor.wanted();
    const ssize_t got = recv(newcomer.socket.get(), wanted.data(), wanted.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    // A newcomer that goes by itself was not refused: a peer may have reached this endpoint at another address.
    if (got <= 0) return close(place, watch);
    acceptor.got(static_cast<std::size_t>(got));
    if (acceptor.state() == Acceptor::State::kRefused) return refuse(place, acceptor.fault(), watch, now);
    if (acceptor.state() == Acceptor::State::kProven) break;
    if (!flush(newcomer)) return close(place, watch);
  }
  const std::uint32_t peer = acceptor.peer();
  const Ruling ruling = rule(acceptor);
  acceptor.rule(ruling);
  const bool told = flush(newcomer);
  if (ruling == Ruling::kAccepted) {
    // If it could not be told, its connection is broken, as the session will find.
    watch.set(newcomer.socket.get(), 0, 0, newcomer.watched);
    Socket socket = std::move(newcomer.socket);
    const Agreed agreed = acceptor.agreed();
    newcomers_.erase(place);
    if (!told) shutdown(socket.get(), SHUT_RDWR);
    take(peer, std::move(socket), agreed);
    return;
  }
  close(place, watch);
}

void Listener::tidy(Watch& watch, Clock::time_point now) {
  while (!newcomers_.empty() && newcomers_.begin()->second.since + kPatience <= now) {
    refuse(newcomers_.begin(), formatted("has not proven itself within {} s", kPatience.count()), watch, now);
  }
  if (watched_ == 0 && paused_until_ <= now) watch.set(socket_.get(), tag_, EPOLLIN, watched_);
}

Listener::Clock::time_point Listener::deadline() const {
  auto first = newcomers_.empty() ? Clock::time_point::max() : newcomers_.begin()->second.since + kPatience;
  if (watched_ == 0) first = std::min(first, paused_until_);
  return first;
}

}  // namespace unisono::tcp
