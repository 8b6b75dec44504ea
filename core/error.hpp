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
  /// `still_written`: see there.
  Error(ErrorCode code, const std::string& text, bool still_written = false)
      : std::runtime_error(text), code_(code), still_written_(still_written) {}
  ErrorCode code() const noexcept { return code_; }
  /// A rank that was stopped may still write to the destination of the call that has failed.
  bool still_written() const noexcept { return still_written_; }

 private:
  ErrorCode code_;
  bool still_written_;
};

}  // namespace unisono
