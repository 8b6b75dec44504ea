#include "network/tcp/question.hpp"

#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace unisono::tcp {

void Question::ask(const Address& listener) {
  asked_ = true;
  socket_ = Socket(socket(listener.six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) return;
  const unsigned scope = listener.interface.empty() ? 0 : if_nametoindex(listener.interface.c_str());
  const SystemAddress address = system_address(listener, scope);
  fault_ = connect(socket_.get(), address.get(), address.bytes) == 0 ? 0 : errno;
}

void Question::withdraw() {
  asked_ = false;
  socket_.reset();
}

Question::Answer Question::answer() const {
  if (!socket_.valid()) return Answer::kNotAsked;
  int fault = fault_;
  if (fault == EINPROGRESS) {
    pollfd ready{socket_.get(), POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1) return Answer::kNone;
    socklen_t bytes = sizeof fault;
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &fault, &bytes);
  }
  if (fault == 0) return Answer::kWelcome;
  return fault == ECONNREFUSED || fault == ECONNRESET ? Answer::kRefused : Answer::kNoWay;
}

}  // namespace unisono::tcp
