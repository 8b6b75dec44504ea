#include "network/shm/doorbell.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>

#include "core/error.hpp"
#include "network/secret.hpp"

namespace unisono::shm {
namespace {

struct Address {
  sockaddr_un address{};
  socklen_t bytes = 0;

  explicit Address(std::uint64_t number) {
    address.sun_family = AF_UNIX;
    // Behind a zero byte: a name that has no file, and goes with its socket.
    const int written = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "unisono-bell-%016llx",
                                      static_cast<unsigned long long>(number));
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(written));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

int make_socket() { return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

/// The process's socket for ringing, -1 if there is none to be had. It is never closed, and a child of fork may use it
/// as well: it has no name and receives nothing.
int socket_to_ring_with() {
  static std::atomic<int> known{-1};
  const int before = known.load(std::memory_order_acquire);
  if (before >= 0) return before;
  const int made = make_socket();
  int nobody = -1;
  if (made < 0 || known.compare_exchange_strong(nobody, made, std::memory_order_acq_rel)) return made;
  close(made);
  return nobody;
}

}  // namespace

Doorbell::Doorbell() : descriptor_(make_socket()) {
  do {
    fill_random(std::as_writable_bytes(std::span(&number_, 1)));
  } while (number_ == 0);
  const Address address(number_);
  if (descriptor_ >= 0 && bind(descriptor_, address.get(), address.bytes) == 0) return;
  const int fault = errno;
  if (descriptor_ >= 0) close(descriptor_);
  throw Error(ErrorCode::kBootstrap, std::string("a socket on which peers of this host ring cannot be had: ") +
                                         std::strerror(fault) + " (a limit of open files, or a sandbox)");
}

Doorbell::~Doorbell() { close(descriptor_); }

void Doorbell::clear() const {
  std::byte rung[16];
  while (recv(descriptor_, rung, sizeof rung, MSG_DONTWAIT) >= 0) {
  }
}

void Doorbell::ring(std::uint64_t number) {
  const int from = socket_to_ring_with();
  if (from < 0) return;
  const Address to(number);
  const std::byte rung{1};
  // A full queue has a ring in it; nobody at the other end needs none.
  static_cast<void>(sendto(from, &rung, sizeof rung, MSG_DONTWAIT | MSG_NOSIGNAL, to.get(), to.bytes));
}

}  // namespace unisono::shm
