// Memory of other libraries as arrays of NumPy.
#include <nanobind/nanobind.h>

#include <cstdint>

#include "core/error.hpp"
#include "python/core/errors.hpp"
#include "python/core/module.hpp"

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>

namespace unisono::python {

namespace {

/// An array of `count` elements at an address, which keeps `owner` alive. NumPy's own ways to look at a tensor of torch
/// take longer, or leave the tensor without the right to be resized.
nb::object array_at(std::uintptr_t address, std::int64_t count, nb::handle dtype, nb::handle owner) {
  static const bool there = PyArray_ImportNumPyAPI() == 0;
  if (!there) throw nb::python_error();
  if (!PyArray_DescrCheck(dtype.ptr()) || count < 0) {
    raise(ErrorCode::kInvalidArgument, "array_at: pass a dtype of NumPy, and a count from 0");
  }
  auto* descr = reinterpret_cast<PyArray_Descr*>(dtype.ptr());
  Py_INCREF(descr);  // which the array takes
  npy_intp elements = count;
  auto* data = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): Python has it as a number
  nb::object array = nb::steal<nb::object>(
      PyArray_NewFromDescr(&PyArray_Type, descr, 1, &elements, nullptr, data, NPY_ARRAY_CARRAY, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  auto* made = reinterpret_cast<PyArrayObject*>(array.ptr());
  PyArray_UpdateFlags(made, NPY_ARRAY_UPDATE_ALL);  // it may not be aligned
  Py_INCREF(owner.ptr());
  if (PyArray_SetBaseObject(made, owner.ptr()) != 0) throw nb::python_error();
  return array;
}

}  // namespace

void bind_foreign_array(nb::module_& module) {
  using namespace nb::literals;
  module.def("array_at", &array_at, "address"_a, "count"_a, "dtype"_a, "owner"_a,
             "An array of `count` elements at an address, which keeps `owner` alive.");
}

}  // namespace unisono::python
