// What concerns the whole process: its threads in the library, what is called beside waits, and what the library is.
#include <nanobind/stl/tuple.h>

#include <chrono>
#include <cstdint>
#include <tuple>

#include "python/core/array_memory.hpp"
#include "python/core/completions.hpp"
#include "python/core/module.hpp"
#include "python/core/without_gil.hpp"
#include "unisono/unisono.h"

namespace unisono::python {

namespace {

/// The process's hook of waits; null: none. Under the GIL.
nb::object& wait_hook() {
  static auto* function = new nb::object;  // NOLINT(cppcoreguidelines-owning-memory): waits may outlive this module
  return *function;
}

/// Called by threads that wait, without the GIL, one at a time.
void call_wait_hook(void* /*context*/) {
  const nb::gil_scoped_acquire held;
  const nb::object own = wait_hook();
  if (!own.is_valid()) return;
  try {
    own();
  } catch (nb::python_error& error) {
    error.restore();
    PyErr_WriteUnraisable(own.ptr());
  }
}

void set_wait_hook(const nb::object& function) {
  wait_hook() = function.is_none() ? nb::object() : function;
  const WithoutGil released;  // a thread in the one before needs it to come out
  unisono_set_wait_hook(function.is_none() ? nullptr : call_wait_hook, nullptr);
}

}  // namespace

void bind_process(nb::module_& module) {
  using namespace nb::literals;  // NOLINT(google-build-using-namespace): argument names

  module.def(
      "threads_inside", [] { return threads_inside().load(); }, "Threads that are in the library without the GIL.");
  module.def("set_wait_hook", &set_wait_hook, "function"_a.none(),
             "Has function() called in every wait; None: nothing.");
  module.def("restore_array_memory", &restore_array_memory, "before"_a,
             "NumPy takes the memory of new arrays from where it did before.");
  module.def(
      "forget_threads",
      [] {
        threads_inside().store(0);
        Completions::forget();
      },
      "In a child of fork: its parent's threads are not here.");
  module.def(
      "completions",
      [] {
        const Completions::Counts counts = Completions::instance().counts();
        return std::tuple(counts.called, counts.gil_taken, counts.waiting);
      },
      "Of what threads beside the program are told with: functions called, times that they took the GIL, still to "
      "call.");
  module.def(
      "end_completions",
      [](double seconds) {
        const WithoutGil released;
        return Completions::instance().end(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
      },
      "seconds"_a, "Calls what is left of them, and ends the threads; whether all have ended.");

  module.def("version", [] { return unisono_version(); });
  module.def(
      "algorithms",
      [] {
        nb::list table;
        for (std::size_t i = 0; i < unisono_algorithms(0, nullptr); ++i) {
          unisono_algorithm_info info{};
          unisono_algorithms(i, &info);
          nb::dict entry;
          entry["collective"] = info.collective;
          entry["name"] = info.name;
          entry["source"] = info.source;
          entry["restriction"] = info.restriction;
          entry["cost"] = info.cost;
          entry["summary"] = info.summary;
          entry["ordered"] = info.ordered != 0;
          entry["radix"] = unisono_algorithm_radix(i);
          table.append(entry);
        }
        return table;
      },
      "The table of algorithms, as dictionaries.");
}

}  // namespace unisono::python
