#include <unistd.h>

#include <cstdio>

#include "python/core/module.hpp"

namespace unisono::python {
namespace {

/// Ends the process with status 1, if it is to, after everything else: this object is older than all that is made with
/// the extension loaded. Python's atexit callbacks have no say in the status.
struct ExitStatus {
  ~ExitStatus() {
    if (!fails) return;
    std::fflush(nullptr);
    _exit(1);
  }
  bool fails = false;
};
ExitStatus exit_status;

}  // namespace

void bind_exit_status(nb::module_& module) {
  module.def(
      "fail_at_exit", [] { exit_status.fails = true; }, "The process will end with status 1, whatever else is said.");
}

}  // namespace unisono::python
