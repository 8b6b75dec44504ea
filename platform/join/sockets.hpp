// Sockets at which the members of a job meet: abstract ones of Unix, and TCP's.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace unisono::join {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

inline constexpr std::uint32_t kMaxName = 100;    ///< characters of an abstract socket's name
inline constexpr std::uint32_t kMaxSecret = 256;  ///< characters of a secret

/// A file descriptor that is closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void reset();
  /// The caller closes it.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// Who is at the other end of a connection, as the kernel says.
struct Credentials {
  std::uint32_t pid = 0;  ///< 0 if not visible from here
  std::uint32_t uid = 0;
};
std::optional<Credentials> credentials_of(const Descriptor& connection);

/// Listens on the abstract socket `name`. Throws Error(kBootstrap).
Descriptor listen_on(const std::string& name);
/// Connects to it; without a value if nobody listens yet. Throws Error(kBootstrap).
Descriptor try_connect(const std::string& name);
/// The next connection, or an invalid descriptor if none waits. Throws Error(kBootstrap) if the system refuses.
Descriptor accept_from(const Descriptor& listener);

/// A host and a port as people write them: "a.example:4711", "10.0.0.1:4711", "[fe80::1%eth0]:4711".
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  std::string text() const;
};
/// Nothing if it is none, or the port is 0.
std::optional<HostPort> parse_host_port(std::string_view text);

/// The same with the first address that the host has: "10.0.0.1:4711". Throws Error(kBootstrap) if there is no such
/// host, or nobody says so by the deadline.
std::string numeric_text_of(const HostPort& where, Deadline deadline);

/// Listens on the port, at the host's own addresses if they are of the loopback, else at all addresses of this machine.
/// `deadline` is for finding out what its name stands for. Throws Error(kBootstrap).
Descriptor listen_on(const HostPort& where, Deadline deadline);
/// Listens at all addresses of this machine, on a port that the system chooses. Throws Error(kBootstrap).
Descriptor listen_anywhere();
/// The port on which it listens.
std::uint16_t port_of(const Descriptor& listener);
/// Why there is no connection.
struct NoConnection {
  std::string reason;
  bool lacking_here = false;  ///< this host has no port, file or memory left for it: nothing is known of the other
};
/// Connects to one of the host's addresses; invalid if none answers before `deadline`, or all refuse: then `failure`
/// says why. Throws Error(kBootstrap) if there is no such host, or nobody says so by the deadline.
Descriptor try_connect(const HostPort& where, Deadline deadline, NoConnection& failure);

/// Sleeps until a descriptor is readable or the deadline passes.
void sleep_until_readable(const Descriptor& connection, Deadline deadline);

/// Milliseconds until the deadline for poll(2), rounded up: 0 only if it has passed.
int milliseconds_until(Deadline deadline);

/// Waits until something can be done with one of the descriptors, or the deadline has passed.
void sleep_until_ready(std::span<pollfd> watched, Deadline deadline);

/// "4 s", "1.5 s": a span for a message to people.
std::string seconds_text(std::chrono::milliseconds span);

}  // namespace unisono::join
