// A question that a host's kernel answers by itself, whatever its processes do.
#pragma once

#include <cstdint>

#include "network/tcp/address.hpp"
#include "network/tcp/socket.hpp"

namespace unisono::tcp {

/// To connect to the port on which a process listens, or listened.
class Question {
 public:
  enum class Answer : std::uint8_t {
    kNone,      ///< yet
    kWelcome,   ///< somebody listens there
    kRefused,   ///< the kernel is there, and nobody listens
    kNoWay,     ///< nothing gets there
    kNotAsked,  ///< this process has no descriptor to ask with
  };

  void ask(const Address& listener);
  bool asked() const { return asked_; }
  void withdraw();
  Answer answer() const;

 private:
  Socket socket_;
  bool asked_ = false;
  int fault_ = 0;  ///< of asking
};

}  // namespace unisono::tcp
