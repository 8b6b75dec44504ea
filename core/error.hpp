// Errors inside the library. The C boundary turns them into codes and texts.
#pragma once

#include <stdexcept>
#include <string>

#include "core/generated/spec.hpp"

namespace unisono {

/// Thrown by everything above the freestanding floors. `what()` is a sentence that says what was
/// given, what is allowed, and for failures in flight: operation, communicator, sequence, peer, phase.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace unisono
