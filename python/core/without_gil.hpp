// Work of the library while other Python threads run.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <optional>

#include "core/error.hpp"
#include "python/core/errors.hpp"

namespace unisono::python {

/// Threads that are in the library without the GIL, or about to take it again.
inline std::atomic<int>& threads_inside() {
  static std::atomic<int> count{0};
  return count;
}

/// Releases the GIL while it lives. Python ends threads that ask for the GIL of an interpreter that is ending, by
/// unwinding their stack, which C++ answers by ending the process; so who ends it must see that they are here.
class WithoutGil {
 private:
  struct Presence {
    Presence() { threads_inside().fetch_add(1); }
    ~Presence() { threads_inside().fetch_sub(1); }
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;
  };
  const Presence presence_;  // from before the GIL is released until it has been taken again
  const nb::gil_scoped_release released_;
};

/// Runs `work` without the GIL; its Error becomes a Python exception.
template <class Work>
auto without_gil(Work&& work) {
  std::optional<Error> failure;
  decltype(work()) result{};
  {
    const WithoutGil released;
    try {
      result = work();
    } catch (const Error& error) {
      failure = error;
    }
  }
  if (failure) raise(failure->code(), failure->what());
  return result;
}

}  // namespace unisono::python
