#include "network/tcp/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

namespace unisono::tcp {

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Socket::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string text_of_error(int number) { return std::generic_category().message(number); }

namespace {

void set(const Socket& connection, int level, int name, std::int64_t value) {
  const int number = static_cast<int>(value);
  setsockopt(connection.get(), level, name, &number, sizeof number);
}

}  // namespace

void set_options(const Socket& connection) { set(connection, IPPROTO_TCP, TCP_NODELAY, 1); }

void set_patience(const Socket& connection, std::chrono::milliseconds patience) {
  constexpr std::int64_t kMostLooks = 127;  // that the kernel counts
  const std::int64_t seconds = std::chrono::ceil<std::chrono::seconds>(patience).count();
  const std::int64_t between = std::clamp<std::int64_t>((seconds + kMostLooks - 1) / kMostLooks, 1, 32767);
  set(connection, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(connection, IPPROTO_TCP, TCP_KEEPINTVL, between);
  set(connection, IPPROTO_TCP, TCP_KEEPCNT, std::clamp<std::int64_t>(seconds / between, 1, kMostLooks));
  set(connection, SOL_SOCKET, SO_KEEPALIVE, 1);
}

void set_loopback_options(const Socket& connection) {
  constexpr std::string_view kUnpaced = "reno";  // which every kernel has, and lets everybody choose
  setsockopt(connection.get(), IPPROTO_TCP, TCP_CONGESTION, kUnpaced.data(), kUnpaced.size());
}

Answering ask_answering(const Socket& connection) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (getsockopt(connection.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return {};
  return {info.tcpi_unacked > 0 || info.tcpi_probes > 0, info.tcpi_last_ack_recv};
}

}  // namespace unisono::tcp
