#include "python/core/module.hpp"

NB_MODULE(_core, module) {
  module.doc() = "Unisono's engine and interpreter. Use the package `unisono`; this module is its inside.";
  // Threads of a job may outlive the interpreter's last look at their objects.
  nanobind::set_leak_warnings(false);
  unisono::python::bind_requests(module);
  unisono::python::bind_communicators(module);
  unisono::python::bind_contexts(module);
  unisono::python::bind_process(module);
  unisono::python::bind_user_operators(module);
  unisono::python::bind_reference(module);
  unisono::python::bind_machine(module);
  unisono::python::bind_tuning(module);
  unisono::python::bind_registration(module);
  unisono::python::bind_exit_status(module);
  unisono::python::bind_foreign_array(module);
  unisono::python::bind_shmem(module);
  unisono::python::bind_switch(module);
  unisono::python::bind_handler(module);
  unisono::python::bind_switch_handlers(module);
  unisono::python::bind_operators(module);
}
