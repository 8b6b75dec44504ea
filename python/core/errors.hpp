// Failures as Python exceptions: unisono.errors has a class for each code.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "core/error.hpp"

namespace unisono::python {

namespace nb = nanobind;

/// Throws the Python exception of an error code. Holds the GIL.
[[noreturn]] inline void raise(int code, const std::string& text) {
  // What a peer said may have been cut in the middle of a character.
  const auto words =
      nb::steal<nb::object>(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  if (!words.is_valid()) throw nb::python_error();
  const nb::object exception = nb::module_::import_("unisono.errors").attr("error_for")(code, words);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

[[noreturn]] inline void raise(ErrorCode code, const std::string& text) { raise(static_cast<int>(code), text); }

}  // namespace unisono::python
