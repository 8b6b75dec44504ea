// Wakes a thread that polls.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/tcp/socket.hpp"
#include "platform/join/sockets.hpp"

namespace unisono::slots {

class Bell {
 public:
  /// Throws Error(kBootstrap) if the system has no descriptor left.
  Bell() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!descriptor_.valid()) {
      throw Error(ErrorCode::kBootstrap,
                  formatted("no descriptor to wake a thread of the switch: {}", tcp::text_of_error(errno)));
    }
  }
  int descriptor() const { return descriptor_.get(); }
  /// From any thread, or a handler of signals.
  void ring() const noexcept {
    const std::uint64_t one = 1;
    // It can only fail because it rings already.
    [[maybe_unused]] const ssize_t rung = ::write(descriptor_.get(), &one, sizeof one);
  }
  /// By the one who was woken.
  void quiet() const noexcept {
    std::uint64_t rings = 0;
    [[maybe_unused]] const ssize_t taken = ::read(descriptor_.get(), &rings, sizeof rings);
  }

 private:
  join::Descriptor descriptor_;
};

}  // namespace unisono::slots
