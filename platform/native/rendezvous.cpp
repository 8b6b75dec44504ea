#include "platform/native/rendezvous.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <sstream>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/shm/wait_hook.hpp"

namespace unisono::rendezvous {
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
  while (shm::WaitHook::installed()) {
    shm::WaitHook::call();
    constexpr timespec kTime{0, std::chrono::nanoseconds(shm::WaitHook::kInterval).count()};
    if (ppoll(watched.data(), watched.size(), &kTime, nullptr) != 0 || Clock::now() >= deadline) return;
  }
  poll(watched.data(), watched.size(), milliseconds_until(deadline));
}

bool send_frame(const Descriptor& connection, FrameKind kind, std::span<const std::byte> body, Deadline deadline,
                int attached) {
  const FrameHead head{kFrameMagic, kProtocol, kind, static_cast<std::uint32_t>(body.size())};
  const auto begin = std::as_bytes(std::span(&head, 1));
  std::vector<std::byte> bytes(begin.begin(), begin.end());
  bytes.insert(bytes.end(), body.begin(), body.end());

  for (std::size_t sent = 0; sent < bytes.size();) {
    iovec piece{bytes.data() + sent, bytes.size() - sent};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (attached >= 0 && sent == 0) {  // rides on the first byte
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &attached, sizeof attached);
    }
    const ssize_t done = sendmsg(connection.get(), &message, MSG_NOSIGNAL);
    if (done > 0) {
      sent += static_cast<std::size_t>(done);
      continue;
    }
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    if (Clock::now() >= deadline) return false;
    pollfd one{connection.get(), POLLOUT, 0};
    sleep_until_ready({&one, 1}, deadline);
  }
  return true;
}

void send_refusal(const Descriptor& connection, const std::string& text) {
  const std::string shortened = text.substr(0, kMaxText);
  send_frame(connection, FrameKind::kRefused, std::as_bytes(std::span(shortened)),
             Clock::now() + std::chrono::seconds(1));
}

FrameReader::Progress FrameReader::read(const Descriptor& connection) {
  for (;;) {
    std::byte* place;
    std::size_t wanted;
    if (have_ < sizeof head_) {
      place = reinterpret_cast<std::byte*>(&head_) + have_;
      wanted = sizeof head_ - have_;
    } else {
      const std::size_t of_body = have_ - sizeof head_;
      if (of_body == body_.size()) return Progress::kComplete;
      place = body_.data() + of_body;
      wanted = body_.size() - of_body;
    }
    iovec piece{place, wanted};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (accepts_descriptor_) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
    }
    const ssize_t done = recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Progress::kMore;
    if (done <= 0) return Progress::kClosed;
    for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr; item = CMSG_NXTHDR(&message, item)) {
      if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item), sizeof fd);
      attached_ = Descriptor(fd);
    }
    have_ += static_cast<std::size_t>(done);
    if (have_ != sizeof head_) continue;
    if (head_.magic != kFrameMagic) {
      fault_ = "it does not speak the rendezvous protocol";
      return Progress::kForeign;
    }
    if (head_.protocol != kProtocol && head_.kind != FrameKind::kRefused) {
      fault_ = formatted(
          "it speaks version {} of the rendezvous protocol, this process {}; all members must use the same release",
          head_.protocol, kProtocol);
      return Progress::kForeign;
    }
    if (head_.body_bytes > std::max(max_body_, kMaxText)) {
      fault_ = formatted("a frame of {} bytes, allowed are {}", head_.body_bytes, std::max(max_body_, kMaxText));
      return Progress::kForeign;
    }
    body_.resize(head_.body_bytes);
  }
}

FrameReader::Progress FrameReader::read_until(const Descriptor& connection, Deadline deadline) {
  for (;;) {
    const Progress progress = read(connection);
    if (progress != Progress::kMore || Clock::now() >= deadline) return progress;
    sleep_until_readable(connection, deadline);
  }
}

}  // namespace unisono::rendezvous
