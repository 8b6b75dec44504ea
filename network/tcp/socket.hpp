// A descriptor that is closed when its owner goes, and the options of the sockets of this network.
#pragma once

#include <chrono>
#include <string>

namespace unisono::tcp {

/// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { reset(); }
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

/// The system's words for an error number. Thread-safe.
std::string text_of_error(int number);

/// Sends at once what is given. Errors are left alone: the connection works without.
void set_options(const Socket& connection);

/// Asks the kernel to look every second whether the other end still answers, also while nothing is sent, and to give it
/// up after `patience`, or a little later. Errors are left alone: the connection works without.
void set_patience(const Socket& connection, std::chrono::milliseconds patience);

/// For a connection over the loopback, where no others use the way: takes a congestion control that does not pace. BBR,
/// which many systems choose for all connections, halves what goes through there.
void set_loopback_options(const Socket& connection);

/// What the kernel knows of a connection's other end.
struct Answering {
  bool awaits = false;               ///< something was sent that the other end has not acknowledged
  unsigned silent_milliseconds = 0;  ///< since it last acknowledged anything
};
Answering ask_answering(const Socket& connection);

}  // namespace unisono::tcp
