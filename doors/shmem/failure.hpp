// What goes wrong, in a sentence.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace unisono::shmem {

/// Every failure of the door. `what()` names the operation, the PE it was about, what was given and what to do. In C it
/// ends the job (interface.hpp), in Python it is an exception.
class Failure : public std::runtime_error {
 public:
  Failure(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
  /// Error code of Unisono's specification.
  int code() const noexcept { return code_; }

 private:
  int code_;
};

/// The error code of this name (docs/reference/errors.md).
int code_named(std::string_view name);

/// Throws Failure: "OPERATION: SENTENCE". The code is that of an argument that is not allowed, if none is named.
[[noreturn]] void fail(const char* operation, const std::string& sentence, std::string_view code = "invalid_argument");

/// Throws Failure with libunisono's last sentence unless the result is 0.
void check(const char* operation, int result);

}  // namespace unisono::shmem
