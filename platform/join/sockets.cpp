#include "platform/join/sockets.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstddef>
#include <cstring>
#include <memory>
#include <sstream>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/tcp/shortage.hpp"
#include "network/wait_hook.hpp"
#include "platform/join/helper.hpp"

namespace unisono::join {
namespace {

struct Address {
  sockaddr_un address{};
  socklen_t bytes = 0;

  /// An abstract address: it begins with a zero byte, has no file, and goes with its last socket.
  explicit Address(const std::string& name) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), std::min<std::size_t>(name.size(), kMaxName));
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};
static_assert(kMaxName + 1 <= sizeof(sockaddr_un::sun_path));

Error failure(const std::string& what, const std::string& name) {
  return Error(ErrorCode::kBootstrap, what + " rendezvous \"" + name + "\" failed: " + std::strerror(errno));
}

Descriptor make_socket(const std::string& name) {
  Descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) throw failure("making a socket for", name);
  return made;
}

}  // namespace

void Descriptor::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.fd_;
    other.fd_ = -1;
  }
  return *this;
}

std::optional<Credentials> credentials_of(const Descriptor& connection) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return std::nullopt;
  return Credentials{static_cast<std::uint32_t>(peer.pid), peer.uid};
}

Descriptor listen_on(const std::string& name) {
  Descriptor listener = make_socket(name);
  const Address address(name);
  if (bind(listener.get(), address.get(), address.bytes) != 0) {
    if (errno == EADDRINUSE) {
      throw Error(ErrorCode::kBootstrap, "rendezvous \"" + name +
                                             "\" is already open: another process is rank 0 of this job, or another "
                                             "job has the same name");
    }
    throw failure("opening", name);
  }
  if (listen(listener.get(), SOMAXCONN) != 0) throw failure("listening on", name);
  return listener;
}

Descriptor try_connect(const std::string& name) {
  Descriptor connection = make_socket(name);
  const Address address(name);
  if (connect(connection.get(), address.get(), address.bytes) == 0) return connection;
  // Nobody listens yet, or too many wait to be accepted: both pass.
  if (errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR) return Descriptor();
  throw failure("connecting to", name);
}

Descriptor accept_from(const Descriptor& listener) {
  Descriptor connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection.valid() || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED) {
    return connection;
  }
  throw Error(ErrorCode::kBootstrap, std::string("accepting a member's connection failed: ") + std::strerror(errno));
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

std::string seconds_text(std::chrono::milliseconds span) {
  std::ostringstream text;
  text << static_cast<double>(span.count()) / 1000.0 << " s";
  return text.str();
}

void sleep_until_readable(const Descriptor& connection, Deadline deadline) {
  pollfd one{connection.get(), POLLIN, 0};
  sleep_until_ready({&one, 1}, deadline);
}

void sleep_until_ready(std::span<pollfd> watched, Deadline deadline) {
  while (WaitHook::installed()) {
    WaitHook::call();
    constexpr timespec kTime{0, std::chrono::nanoseconds(WaitHook::kInterval).count()};
    if (ppoll(watched.data(), watched.size(), &kTime, nullptr) != 0 || Clock::now() >= deadline) return;
  }
  poll(watched.data(), watched.size(), milliseconds_until(deadline));
}

std::string HostPort::text() const {
  return (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<HostPort> parse_host_port(std::string_view text) {
  HostPort found;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.front() == '[') {
    if (host.back() != ']') return std::nullopt;
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;  // an IPv6 address without brackets
  }
  constexpr std::size_t kLongest = 253;  // of a name
  if (host.empty() || host.size() > kLongest || host.find_first_of(" []/") != std::string_view::npos) {
    return std::nullopt;
  }
  const auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), found.port);
  if (fault != std::errc() || end != port.data() + port.size() || found.port == 0) return std::nullopt;
  found.host = host;
  return found;
}

namespace {

using Addresses = std::shared_ptr<addrinfo>;

struct Found {
  int fault = 0;
  Addresses addresses;
};

Found look_up(const HostPort& where, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int fault = getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &found);
  return {fault, fault == 0 ? Addresses(found, &freeaddrinfo) : Addresses()};
}

Addresses addresses_of(const HostPort& where, Deadline deadline) {
  // An address needs nobody; a name may need a server that does not answer, and asking knows no deadline.
  Found found = look_up(where, AI_NUMERICHOST);
  if (found.fault == 0) return found.addresses;
  const Helper<Found> helper([where] { return look_up(where, 0); });
  const auto brought = helper.result(deadline);
  if (!brought) {
    throw Error(ErrorCode::kBootstrap,
                formatted("which addresses the host of {} has was not known in time: the name service "
                          "of this host (getaddrinfo) does not answer. An address in place of the name needs none",
                          where.text()));
  }
  if (brought->fault != 0) {
    throw Error(ErrorCode::kBootstrap,
                formatted("the host of {} is not known here: {}", where.text(), gai_strerror(brought->fault)));
  }
  return brought->addresses;
}

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(ipv4.sin_addr.s_addr) >> 24U == 127;
  }
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

Descriptor make_tcp_socket(int family) {
  return Descriptor(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
}

/// Listens at one address; invalid if the system refuses.
Descriptor listen_at(const sockaddr& address, socklen_t bytes) {
  Descriptor listener = make_tcp_socket(address.sa_family);
  if (!listener.valid()) return listener;
  const int on = 1;
  const int off = 0;
  // A port whose last job has just ended is free; one that somebody listens on is not.
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.sa_family == AF_INET6) setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(listener.get(), &address, bytes) == 0 && listen(listener.get(), SOMAXCONN) == 0) return listener;
  const int fault = errno;
  listener.reset();
  errno = fault;
  return listener;
}

/// Why an address cannot be connected to: what is lacking here, or what the system says.
NoConnection reason_of(int fault, const sockaddr& address, socklen_t bytes) {
  std::string lacks = tcp::shortage(fault, address, bytes);
  if (lacks.empty()) return {std::strerror(fault), false};
  return {std::move(lacks), true};
}

Descriptor listen_everywhere(std::uint16_t port) {
  sockaddr_in6 both{};
  both.sin6_family = AF_INET6;
  both.sin6_port = htons(port);
  Descriptor listener = listen_at(reinterpret_cast<const sockaddr&>(both), sizeof both);
  if (listener.valid() || errno == EADDRINUSE) return listener;
  sockaddr_in old{};
  old.sin_family = AF_INET;
  old.sin_port = htons(port);
  return listen_at(reinterpret_cast<const sockaddr&>(old), sizeof old);
}

}  // namespace

std::string numeric_text_of(const HostPort& where, Deadline deadline) {
  const Addresses found = addresses_of(where, deadline);
  std::array<char, NI_MAXHOST> host{};
  const int fault =
      getnameinfo(found->ai_addr, found->ai_addrlen, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  return fault == 0 ? HostPort{host.data(), where.port}.text() : where.text();
}

Descriptor listen_on(const HostPort& where, Deadline deadline) {
  const Addresses found = addresses_of(where, deadline);
  // A name's address may lead here through other machines, or mean the loopback here and not elsewhere.
  const bool numeric = where.host.find_first_not_of("0123456789.") == std::string::npos ||
                       where.host.find(':') != std::string::npos || where.host == "localhost";
  Descriptor listener;
  if (numeric && is_loopback(*found->ai_addr)) {
    listener = listen_at(*found->ai_addr, found->ai_addrlen);
  } else {
    listener = listen_everywhere(where.port);
  }
  if (listener.valid()) return listener;
  if (errno == EADDRINUSE) {
    throw Error(ErrorCode::kBootstrap,
                formatted("port {} of the rendezvous {} is in use on this host: another process is rank 0 of this job, "
                          "or another program has the port; choose another one",
                          where.port, where.text()));
  }
  throw Error(ErrorCode::kBootstrap,
              formatted("listening on the rendezvous {} failed: {}", where.text(), std::strerror(errno)));
}

Descriptor listen_anywhere() {
  Descriptor listener = listen_everywhere(0);
  if (listener.valid()) return listener;
  const int fault = errno;
  const std::string lacks = tcp::shortage_of_ports(fault);
  throw Error(ErrorCode::kBootstrap,
              formatted("listening for the job's members failed: {}", lacks.empty() ? std::strerror(fault) : lacks));
}

std::uint16_t port_of(const Descriptor& listener) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
  // In the same place for both families.
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Descriptor try_connect(const HostPort& where, Deadline deadline, NoConnection& failure) {
  constexpr std::chrono::seconds kPatience{2};  // with one address
  const Addresses found = addresses_of(where, deadline);
  for (const addrinfo* address = found.get(); address != nullptr; address = address->ai_next) {
    Descriptor connection = make_tcp_socket(address->ai_family);
    if (!connection.valid()) {
      failure = reason_of(errno, *address->ai_addr, address->ai_addrlen);
      continue;
    }
    int fault = 0;
    if (connect(connection.get(), address->ai_addr, address->ai_addrlen) != 0) {
      fault = errno;
      if (fault == EINPROGRESS) {
        pollfd one{connection.get(), POLLOUT, 0};
        const Deadline until = std::min(deadline, Clock::now() + kPatience);
        do {
          sleep_until_ready({&one, 1}, until);
        } while (one.revents == 0 && Clock::now() < until);
        socklen_t bytes = sizeof fault;
        if (one.revents == 0) {
          fault = ETIMEDOUT;
        } else if (getsockopt(connection.get(), SOL_SOCKET, SO_ERROR, &fault, &bytes) != 0) {
          fault = errno;
        }
      }
    }
    if (fault == 0) {
      const int on = 1;
      setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return connection;
    }
    failure = reason_of(fault, *address->ai_addr, address->ai_addrlen);
  }
  return Descriptor();
}

}  // namespace unisono::join
