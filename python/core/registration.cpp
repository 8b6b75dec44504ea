// Registered memory, by the functions of C.
#include "python/core/errors.hpp"
#include "python/core/memory.hpp"
#include "python/core/module.hpp"
#include "unisono/unisono.h"

namespace unisono::python {

namespace {

/// The memory of an object, held and registered. Deregistered before Python may free it.
class Registration {
 public:
  explicit Registration(nb::handle buffer) : memory_(buffer, "buffer", false) {
    state_.struct_size = sizeof state_;
    check(unisono_register(nullptr, memory_.data(), memory_.bytes(), &handle_));
    if (const unisono_result result = unisono_registration_describe(handle_, &state_); result != 0) {
      const std::string text = unisono_last_error();
      unisono_deregister(handle_);
      raise(result, text);
    }
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration() { unisono_deregister(handle_); }  // refused in a child of fork, which has registered nothing

  bool kernel_copies() const { return state_.kernel_copies != 0; }
  bool allocated() const { return state_.allocated != 0; }

 private:
  static void check(unisono_result result) {
    if (result != 0) raise(result, unisono_last_error());
  }

  Memory memory_;
  unisono_registration* handle_ = nullptr;
  unisono_registration_state state_{};
};

}  // namespace

void bind_registration(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<Registration>(module, "Registration", "Memory that is held and registered, as long as this lives.")
      .def(nb::init<nb::handle>(), "buffer"_a)
      .def_prop_ro("kernel_copies", &Registration::kernel_copies)
      .def_prop_ro("allocated", &Registration::allocated);
}

}  // namespace unisono::python
