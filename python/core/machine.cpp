// What the engine knows of the machine.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "core/cores.hpp"
#include "python/core/module.hpp"

namespace unisono::python {

void bind_machine(nb::module_& module) {
  module.def(
      "cgroup_quota",
      [](const std::string& root) {
        const Quota quota = cgroup_quota(root);
        return std::pair(quota.cores, quota.file);
      },
      nb::arg("root"));
}

}  // namespace unisono::python
