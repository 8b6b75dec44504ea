#include "network/tcp/shortage.hpp"

#include <sys/resource.h>

#include <cerrno>

#include "core/text.hpp"
#include "network/tcp/socket.hpp"

namespace unisono::tcp {

namespace {

constexpr const char* kNoPort =
    "no port of this host is free: widen net.ipv4.ip_local_port_range, or use fewer ranks on it";

/// Whether the kernel has an address of its own for what goes there. A datagram socket needs a port for the question,
/// too, but of other ones, and says so in another way.
bool has_source(const sockaddr& to, socklen_t bytes) {
  const Socket ask(socket(to.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return !ask.valid() || connect(ask.get(), &to, bytes) == 0 || errno == EAGAIN;
}

}  // namespace

std::string shortage(int error) {
  if (error == EMFILE) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return formatted("this process has all {} files open that it may: raise the limit (ulimit -n)", limit.rlim_cur);
  }
  if (error == ENFILE) return "this host has as many files open as it may: raise fs.file-max";
  if (error == ENOBUFS || error == ENOMEM) return "the kernel of this host has no memory for a connection";
  return {};
}

std::string shortage(int error, const sockaddr& to, socklen_t bytes) {
  return error == EADDRNOTAVAIL && has_source(to, bytes) ? kNoPort : shortage(error);
}

std::string shortage_of_ports(int error) { return error == EADDRINUSE ? kNoPort : shortage(error); }

}  // namespace unisono::tcp
