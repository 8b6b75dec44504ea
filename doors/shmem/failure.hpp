// What goes wrong, in a sentence.
#pragma once

#include <stdexcept>
#include <string>

namespace unisono::shmem {

/// Every failure of the door. `what()` names the operation, the PE it was about, what was given and what to do. In C it
/// ends the job (interface.hpp), in Python it is an exception.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws Failure: "OPERATION: SENTENCE".
[[noreturn]] void fail(const char* operation, const std::string& sentence);

/// Throws Failure with libunisono's last sentence unless the result is 0.
void check(const char* operation, int result);

}  // namespace unisono::shmem
