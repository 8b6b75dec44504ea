// Parts of the extension module.
#pragma once

#include <nanobind/nanobind.h>

namespace unisono::python {

namespace nb = nanobind;

void bind_requests(nb::module_& module);
void bind_communicators(nb::module_& module);
void bind_contexts(nb::module_& module);
void bind_process(nb::module_& module);
void bind_user_operators(nb::module_& module);
void bind_reference(nb::module_& module);
void bind_machine(nb::module_& module);
void bind_tuning(nb::module_& module);
void bind_registration(nb::module_& module);
void bind_exit_status(nb::module_& module);
void bind_foreign_array(nb::module_& module);
void bind_shmem(nb::module_& module);
void bind_switch(nb::module_& module);
void bind_handler(nb::module_& module);
void bind_switch_handlers(nb::module_& module);
void bind_operators(nb::module_& module);

}  // namespace unisono::python
