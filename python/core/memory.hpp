// The memory of a Python buffer, held as long as a call uses it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <utility>

#include "python/core/errors.hpp"

namespace unisono::python {

/// Bytes of an object with the buffer protocol. Python keeps the memory in place while this lives. To be
/// made and destroyed with the GIL.
class Memory {
 public:
  Memory() = default;
  /// `name` is the argument's, for messages. None gives no memory.
  Memory(nb::handle object, const char* name, bool writable) {
    if (object.is_none()) return;
    if (acquire(object, writable)) return;
    PyErr_Clear();
    // NumPy offers no buffer for element types that the struct module does not know, such as bfloat16 and times. Of
    // arrays without axes, views of other types must have elements of the same size.
    if (nb::hasattr(object, "view") && nb::hasattr(object, "reshape")) {
      const nb::object raw = object.attr("reshape")(-1).attr("view")("u1");
      if (acquire(raw, writable)) return;
      PyErr_Clear();
    }
    raise(ErrorCode::kInvalidArgument, std::string(name) + " is a " + Py_TYPE(object.ptr())->tp_name +
                                           "; needed is a C-contiguous" + (writable ? ", writable" : "") +
                                           " object with the buffer protocol");
  }
  /// Of an array of NumPy whose memory is known: a reference keeps it in place as well as a view, and costs less.
  Memory(nb::handle array, const void* data, std::uint64_t bytes) : held_(Held::kReference) {
    view_.buf = const_cast<void*>(data);  // NOLINT(cppcoreguidelines-pro-type-const-cast): as views have it
    view_.obj = array.inc_ref().ptr();
    view_.len = static_cast<Py_ssize_t>(bytes);
  }
  Memory(Memory&& other) noexcept : view_(other.view_), held_(std::exchange(other.held_, Held::kNothing)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(view_, other.view_);
    std::swap(held_, other.held_);
    return *this;
  }
  ~Memory() {
    if (held_ == Held::kView) PyBuffer_Release(&view_);
    if (held_ == Held::kReference) Py_DECREF(view_.obj);
  }

  void* data() const { return held_ != Held::kNothing ? view_.buf : nullptr; }
  /// Whose memory it is; invalid if there is none.
  nb::handle owner() const { return held_ != Held::kNothing ? view_.obj : nullptr; }
  std::uint64_t bytes() const { return held_ != Held::kNothing ? static_cast<std::uint64_t>(view_.len) : 0; }

 private:
  bool acquire(nb::handle object, bool writable) {
    if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_CONTIG : PyBUF_CONTIG_RO) != 0) return false;
    if (PyBuffer_IsContiguous(&view_, 'C') == 0) {
      PyBuffer_Release(&view_);
      return false;
    }
    held_ = Held::kView;
    return true;
  }

  enum class Held : std::uint8_t { kNothing, kView, kReference };
  Py_buffer view_{};
  Held held_ = Held::kNothing;
};

}  // namespace unisono::python
