// Memory of NumPy's arrays from Unisono's allocated memory (NEP 49).
#pragma once

#include <nanobind/nanobind.h>

#include "unisono/unisono.h"

namespace unisono::python {

namespace nb = nanobind;

/// Has NumPy take the memory of arrays that are made from now on, in this thread's contextvars context, from
/// unisono_allocate of `context`, as far as that has room; small arrays, and what finds no room, from the system.
/// Arrays keep their memory for as long as they live, whatever becomes of context and setting. Returns the setting
/// before, for `restore_array_memory`. Throws a Python exception.
nb::object take_array_memory(unisono_context* context);
void restore_array_memory(nb::handle before);

}  // namespace unisono::python
