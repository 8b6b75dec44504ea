// Somebody between two endpoints of TCP, who passes their bytes on, holds them back, or cuts a connection.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "network/tcp/address.hpp"
#include "network/tcp/socket.hpp"

namespace unisono::test {

/// Listens on a port of the loopback, and has a connection of its own to `port` for each that comes. Nothing moves
/// unless it is pumped.
class Relay {
 public:
  explicit Relay(std::uint16_t port) : there_(port), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    const auto system = address(0);
    if (bind(listener_.get(), system.get(), system.bytes) != 0 || listen(listener_.get(), 64) != 0) {
      throw std::runtime_error("the relay cannot listen");
    }
  }
  std::uint16_t port() const { return tcp::local_address(listener_.get()).port; }
  /// Connections that have come so far.
  std::size_t count() const { return links_.size(); }
  /// Whether more has gone over the connection than a handshake, that of TLS among it.
  bool carries(std::size_t which) const { return which < links_.size() && links_[which]->moved > 16'384; }
  /// From now on nobody else is let through: a connection that comes is closed.
  void close_door() { open_ = false; }
  /// Nothing moves on the connection, in the order in which they came, as long as that is set.
  void hold(std::size_t which, bool holds) { links_.at(which)->held = holds; }
  /// As a box on the way does that has forgotten it: both ends are told.
  void cut(std::size_t which) {
    links_.at(which)->ends[0].reset();
    links_.at(which)->ends[1].reset();
  }
  void pump() {
    for (;;) {
      tcp::Socket come(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!come.valid()) break;
      if (!open_) continue;
      tcp::Socket on(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const auto system = address(there_);
      if (connect(on.get(), system.get(), system.bytes) != 0) throw std::runtime_error("the relay cannot connect");
      fcntl(on.get(), F_SETFL, O_NONBLOCK);
      links_.push_back(std::make_unique<Link>());
      links_.back()->ends[0] = std::move(come);
      links_.back()->ends[1] = std::move(on);
    }
    for (const auto& link : links_) {
      for (std::size_t from = 0; from < 2 && !link->held; ++from) move(*link, from);
    }
  }

 private:
  struct Link {
    std::array<tcp::Socket, 2> ends;
    std::array<std::vector<std::byte>, 2> waiting;  ///< that came from an end
    std::array<bool, 2> ended{};
    std::size_t moved = 0;  ///< bytes, from both ends
    bool held = false;
  };
  static tcp::SystemAddress address(std::uint16_t port) {
    tcp::Address here;
    here.bytes = {127, 0, 0, 1};
    here.port = port;
    return tcp::system_address(here, 0);
  }
  static void move(Link& link, std::size_t from) {
    if (!link.ends[0].valid()) return;
    std::vector<std::byte>& waiting = link.waiting[from];
    std::array<std::byte, 65536> bytes;
    if (waiting.empty() && !link.ended[from]) {
      const ssize_t got = recv(link.ends[from].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got > 0) waiting.assign(bytes.begin(), bytes.begin() + got);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) link.ended[from] = true;
    }
    if (!waiting.empty()) {
      const ssize_t sent = send(link.ends[1 - from].get(), waiting.data(), waiting.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent <= 0) return;
      waiting.erase(waiting.begin(), waiting.begin() + sent);
      link.moved += static_cast<std::size_t>(sent);
    } else if (link.ended[from]) {
      shutdown(link.ends[1 - from].get(), SHUT_WR);
    }
  }

  std::uint16_t there_;
  tcp::Socket listener_;
  std::vector<std::unique_ptr<Link>> links_;
  bool open_ = true;
};

}  // namespace unisono::test
