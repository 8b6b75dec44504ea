// Work of the library while other Python threads run.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "core/error.hpp"
#include "python/core/errors.hpp"

namespace unisono::python {

/// Runs `work` without the GIL; its Error becomes a Python exception.
template <class Work>
auto without_gil(Work&& work) {
  std::optional<Error> failure;
  decltype(work()) result{};
  {
    const nb::gil_scoped_release released;
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
