#include "python/core/outcome.hpp"

#include <nanobind/stl/string.h>

namespace unisono::python {

void keep_if_written(const Outcome& outcome, nb::handle destination) noexcept {
  if (!outcome.still_written || !destination.is_valid() || destination.is_none()) return;
  try {
    nb::module_::import_("unisono.errors").attr("keep")(destination, outcome.text);
  } catch (...) {
    destination.inc_ref();
  }
}

int signal_raised(void* raised) {
  const nb::gil_scoped_acquire held;
  if (PyErr_CheckSignals() == 0) return 0;
  *static_cast<bool*>(raised) = true;
  return 1;
}

}  // namespace unisono::python
