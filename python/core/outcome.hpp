// What the C interface says of a call, and how long waits go on in this module.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <cmath>
#include <string>

#include "core/generated/spec.hpp"
#include "python/core/errors.hpp"
#include "python/core/quick.hpp"
#include "python/core/without_gil.hpp"
#include "unisono/unisono.h"

namespace unisono::python {

/// Raises the error of the library's last call in this thread, if it had one.
inline void check(unisono_result result) {
  if (result != 0) raise(result, unisono_last_error());
}

/// A result with its text, taken before another call of this thread replaces the text.
struct Outcome {
  unisono_result code = 0;
  int complete = 0;
  std::string text;
  bool still_written = false;  ///< a stopped rank may still write to the destination

  /// To be called right after a call that failed.
  void note() {
    if (code == 0) return;
    text = unisono_last_error();
    still_written = unisono_last_error_still_written() != 0;
  }
};

/// Keeps a destination that a stopped rank may still write to for as long as this process lives. Requests are also let
/// go of while the interpreter ends, when there are no modules any more: then a reference that nobody gives back does.
void keep_if_written(const Outcome& outcome, nb::handle destination) noexcept;

/// Calls the library with the GIL released; raises its error.
template <class Call>
void call_library(Call&& call) {
  Outcome outcome;
  {
    const WithoutGil released;
    outcome.code = call();
    if (outcome.code != 0) outcome.text = unisono_last_error();
  }
  if (outcome.code != 0) raise(outcome.code, outcome.text);
}

/// Whether a signal's handler has raised; the exception is then pending in this thread.
int signal_raised(void* raised);

/// Runs what waits for other ranks to its end. Python handles signals in the main thread only: there the wait asks
/// for them. A signal whose handler raises ends it, and with it the communicator, but for agreements.
template <class Call>
void interruptibly(Call&& call, nb::handle destination = {}) {
  const bool asks = is_first_thread();
  bool raised = false;
  Outcome outcome;
  {
    const WithoutGil released;
    if (asks) unisono_set_interrupt(signal_raised, &raised);
    outcome.code = call();
    outcome.note();
    if (asks) unisono_set_interrupt(nullptr, nullptr);
  }
  keep_if_written(outcome, destination);
  if (raised) throw nb::python_error();
  if (outcome.code != 0) raise(outcome.code, outcome.text);
}

/// How long a thread waits before it looks for signals.
inline constexpr double kSlice = 0.05;

/// Calls `look(seconds)`, which returns whether it found what it waits for, until it has or `seconds` (negative:
/// unlimited) have passed, looking for signals in between.
template <class Look>
bool in_slices(double seconds, Look&& look) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    double slice = kSlice;
    bool last = false;
    if (seconds >= 0) {
      const double rest = seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      last = rest <= slice;
      slice = std::fmin(slice, std::fmax(rest, 0));
    }
    if (look(slice)) return true;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (last) return false;
  }
}

}  // namespace unisono::python
