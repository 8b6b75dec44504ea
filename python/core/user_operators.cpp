// Operators that are functions of Python.
#include <nanobind/stl/string.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/generated/spec.hpp"
#include "python/core/module.hpp"
#include "python/core/outcome.hpp"
#include "unisono/unisono.h"

namespace unisono::python {

namespace {

/// Functions of operators by the operators' numbers. Guarded by the GIL. A cell is kept for ever, for a call may still
/// use it, against the rules; what the function holds goes when the operator is freed.
std::map<unisono_op, nb::object*>& functions_of_ops() {
  static auto* map = new std::map<unisono_op, nb::object*>;
  return *map;
}

/// The function of an operator, which returns None, or why it has failed; called from inside the engine, on a thread
/// without the GIL. No call of the engine is made with the GIL held, so that the thread that has it cannot wait for the
/// engine.
int call_python(const void* a, const void* b, void* out, std::uint64_t count, unisono_datatype datatype,
                void* context) {
  const nb::gil_scoped_acquire held;
  const nb::object function = *static_cast<const nb::object*>(context);
  try {
    if (!function.is_valid()) return unisono_op_failed("it was freed");
    std::uint64_t bytes = count * bytes_of(static_cast<Datatype>(datatype));
    const auto view = [&](const void* data, int flags) {
      return nb::steal<nb::object>(
          PyMemoryView_FromMemory(static_cast<char*>(const_cast<void*>(data)), static_cast<Py_ssize_t>(bytes), flags));
    };
    const nb::object failure = function(view(a, PyBUF_READ), view(b, PyBUF_READ), view(out, PyBUF_WRITE), datatype);
    return failure.is_none() ? 0 : unisono_op_failed(nb::cast<std::string>(failure).c_str());
  } catch (nb::python_error& error) {
    error.restore();
    PyErr_WriteUnraisable(function.ptr());
    return 1;
  } catch (...) {
    return 2;
  }
}

}  // namespace

void bind_user_operators(nb::module_& module) {
  using namespace nb::literals;  // NOLINT(google-build-using-namespace): argument names

  module.def(
      "create_op",
      [](const std::string& name, const nb::callable& function, bool commutative) {
        unisono_op op = 0;
        auto cell = std::make_unique<nb::object>(function);
        check(unisono_op_create(name.c_str(), call_python, cell.get(), commutative ? 1 : 0, &op));
        functions_of_ops()[op] = cell.release();
        return op;
      },
      "name"_a, "function"_a, "commutative"_a, "Defines an operator; returns its number.");
  module.def(
      "free_op",
      [](int op) {
        check(unisono_op_free(op));
        const auto own = functions_of_ops().find(op);
        if (own == functions_of_ops().end()) return;  // it is in C
        const nb::object function = std::exchange(*own->second, nb::object());
        functions_of_ops().erase(own);  // before the function goes, which may run code of the user
      },
      "op"_a, "Undefines an operator.");
}

}  // namespace unisono::python
