#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/error.hpp"
#include "core/quoted.hpp"
#include "core/text.hpp"
#include "platform/join/pmi.hpp"

namespace unisono::join {

PmiSocket::PmiSocket(int connection, std::string name) : connection_(connection), name_(std::move(name)) {}

void PmiSocket::fail(const std::string& text) {
  out_of_step_ = true;
  throw Error(ErrorCode::kBootstrap, formatted("the launcher ({}) {}", name_, text));
}

void PmiSocket::say(std::string_view text, Deadline deadline) {
  if (out_of_step_) fail("is not asked again after what it did not answer");
  while (!text.empty()) {
    // Never set to be non-blocking itself: it may be an MPI library's as well.
    const ssize_t done = send(connection_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done > 0) {
      text.remove_prefix(static_cast<std::size_t>(done));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EBADF || errno == ENOTSOCK) {
      fail(
          "cannot be reached: this process has not inherited the socket, or has closed it, as MPI_Finalize does. A "
          "program that a rank starts is no rank: give it UNISONO_START=none in its environment");
    }
    if (errno == EPIPE || errno == ECONNRESET) {
      fail("has closed the connection: it has ended, or MPI_Finalize was called before");
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK) fail(formatted("cannot be reached: {}", std::strerror(errno)));
    if (Clock::now() >= deadline) fail("reads nothing");
    pollfd one{connection_, POLLOUT, 0};
    sleep_until_ready({&one, 1}, deadline);
  }
}

bool PmiSocket::hear(Deadline deadline) {
  for (;;) {
    std::array<char, 4096> piece{};
    const std::size_t room = std::min(piece.size(), kMaxPmiLine - heard_.size());
    const ssize_t bytes = recv(connection_, piece.data(), room, MSG_DONTWAIT);
    if (bytes > 0) {
      heard_.append(piece.data(), static_cast<std::size_t>(bytes));
      return true;
    }
    if (bytes == 0)
      fail("has closed the connection" + (heard_.empty() ? "" : " in the middle of " + in_quotes(heard_)));
    if (errno == EINTR) continue;
    if (errno == ECONNRESET) fail("has closed the connection");
    if (errno != EAGAIN && errno != EWOULDBLOCK) fail(formatted("cannot be heard: {}", std::strerror(errno)));
    if (Clock::now() >= deadline) {
      out_of_step_ = true;
      return false;
    }
    pollfd one{connection_, POLLIN, 0};
    sleep_until_ready({&one, 1}, deadline);
  }
}

std::optional<std::string> PmiSocket::line(Deadline deadline) {
  for (;;) {
    const std::size_t end = heard_.find('\n');
    if (end != std::string::npos) {
      std::string line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return line;
    }
    if (heard_.size() >= kMaxPmiLine) {
      fail(formatted("said a line of more than {} bytes: {}", kMaxPmiLine, in_quotes(heard_)));
    }
    if (!hear(deadline)) return std::nullopt;
  }
}

std::optional<std::string> PmiSocket::message(Deadline deadline) {
  constexpr std::size_t kPlaces = 6;
  while (heard_.size() < kPlaces) {
    if (!hear(deadline)) return std::nullopt;
  }
  std::size_t bytes = 0;
  const char* const end = heard_.data() + kPlaces;
  const char* const digits = std::find_if(end - kPlaces, end, [](char c) { return c != ' '; });
  const auto [stop, fault] = std::from_chars(digits, end, bytes);
  // Some end it earlier, with blanks behind.
  const bool whole = fault == std::errc() && std::all_of(stop, end, [](char c) { return c == ' '; });
  if (!whole || bytes == 0 || bytes > kMaxPmiLine - kPlaces) {
    fail(formatted("said {}, where the length of a message of 1 to {} bytes was expected", in_quotes(heard_),
                   kMaxPmiLine - kPlaces));
  }
  while (heard_.size() < kPlaces + bytes) {
    if (!hear(deadline)) return std::nullopt;
  }
  std::string message = heard_.substr(kPlaces, bytes);
  heard_.erase(0, kPlaces + bytes);
  return message;
}

std::uint32_t PmiSocket::number(const PmiLine& line, const std::string& name, std::uint32_t least, std::uint32_t most) {
  const std::string text = line.word(name);
  std::uint32_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    fail(formatted("said {} as {} in \"cmd={}\"; allowed are {} to {}", in_quotes(text), name, line.command, least,
                   most));
  }
  return value;
}

}  // namespace unisono::join
