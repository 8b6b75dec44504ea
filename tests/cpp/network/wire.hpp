// Two sockets with somebody between them, who sees every byte, and may alter it.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include "network/tcp/socket.hpp"

namespace unisono::test {

/// One direction of what goes between: bytes that came and were not passed on yet, and all that ever came.
struct Stream {
  std::vector<std::byte> waiting;
  std::vector<std::byte> seen;
  /// Alters what has just come, which is at the end of `waiting`, and began at byte `at` of the stream.
  std::function<void(std::vector<std::byte>& fresh, std::size_t at)> alter;
  bool ended = false;
};

/// The ends do not block. Nothing moves unless `pump` is called.
class Wire {
 public:
  Wire() {
    for (std::size_t end = 0; end < 2; ++end) {
      std::array<int, 2> pair{};
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0) {
        throw std::runtime_error("no sockets");
      }
      ends_[end] = tcp::Socket(pair[0]);
      middle_[end] = tcp::Socket(pair[1]);
    }
  }
  int end(std::size_t which) const { return ends_[which].get(); }
  /// What goes from end `which`.
  Stream& from(std::size_t which) { return streams_[which]; }
  /// Passes on what there is; true if that was anything.
  bool pump() {
    const bool first = pump(0);
    return pump(1) || first;
  }
  /// As if the end had said that nothing more comes of it.
  void end_stream(std::size_t which) {
    streams_[which].ended = true;
    shutdown(middle_[1 - which].get(), SHUT_WR);
  }

 private:
  bool pump(std::size_t which) {
    Stream& stream = streams_[which];
    if (stream.ended) return false;
    std::array<std::byte, 16384> bytes;
    bool moved = false;
    for (;;) {
      const ssize_t got = recv(middle_[which].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got <= 0) break;
      moved = true;
      std::vector<std::byte> fresh(bytes.begin(), bytes.begin() + got);
      const std::size_t at = stream.seen.size();
      stream.seen.insert(stream.seen.end(), fresh.begin(), fresh.end());
      if (stream.alter) stream.alter(fresh, at);
      stream.waiting.insert(stream.waiting.end(), fresh.begin(), fresh.end());
    }
    const ssize_t sent = send(middle_[1 - which].get(), stream.waiting.data(), stream.waiting.size(), MSG_NOSIGNAL);
    if (sent <= 0) return moved;
    stream.waiting.erase(stream.waiting.begin(), stream.waiting.begin() + sent);
    return true;
  }

  std::array<tcp::Socket, 2> ends_;
  std::array<tcp::Socket, 2> middle_;
  std::array<Stream, 2> streams_;
};

}  // namespace unisono::test
