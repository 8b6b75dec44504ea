// The reference interpreter and checker as Python functions.
#include "python/core/module.hpp"

namespace unisono::python {

void bind_reference(nb::module_& /*module*/) {}

}  // namespace unisono::python
