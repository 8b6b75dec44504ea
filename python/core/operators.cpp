// Operators of users in C: folded by the interpreter of handlers, on ranks and in the switches that carry their calls.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <memory>
#include <tuple>

#include "core/text.hpp"
#include "core/user_op.hpp"
#include "driver/interface.hpp"
#include "driver/objects.hpp"
#include "python/core/module.hpp"
#include "python/core/without_gil.hpp"
#include "switch/handler/operator.hpp"

namespace unisono::python {
namespace {

std::span<const std::byte> bytes_of(const nb::bytes& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()};
}

/// The memory of an array, contiguous, while it lives.
class View {
 public:
  View(nb::handle of, int flags) {
    if (PyObject_GetBuffer(of.ptr(), &buffer_, flags | PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  }
  ~View() { PyBuffer_Release(&buffer_); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(buffer_.buf); }
  std::size_t bytes() const { return static_cast<std::size_t>(buffer_.len); }

 private:
  Py_buffer buffer_{};
};

/// What engines call.
int apply(const void* a, const void* b, void* out, std::uint64_t count, int datatype, void* context) {
  const auto& op = *static_cast<const handler::Operator*>(context);
  const std::uint64_t bytes = unisono::bytes_of(static_cast<Datatype>(datatype));
  std::string why;
  if (bytes != op.element_bytes()) {
    why = formatted("its elements have {} bytes, and those of the call {}", op.element_bytes(), bytes);
  } else if (op.fold(static_cast<const std::byte*>(a), static_cast<const std::byte*>(b), static_cast<std::byte*>(out),
                     count, why)) {
    return 0;
  }
  explain_failure(why);
  return 1;
}

class OperatorInC {
 public:
  explicit OperatorInC(const nb::bytes& binary)
      : op_(without_gil([&] { return std::make_shared<const handler::Operator>(bytes_of(binary)); })) {}
  std::uint32_t element_bytes() const { return op_->element_bytes(); }

  int create(const std::string& name, bool commutative) const {
    return static_cast<int>(without_gil([&] {
      const Func func =
          add_user_op({name, apply, const_cast<handler::Operator*>(op_.get()), commutative});  // which is only read
      // Kept for ever: a call in flight may still use it.
      static auto& kept = *new std::vector<std::shared_ptr<const handler::Operator>>;
      kept.push_back(op_);
      return func;
    }));
  }

  /// out = a op b, element by element.
  std::string fold(nb::handle a, nb::handle b, nb::handle out) const {
    const View left(a, PyBUF_SIMPLE);
    const View right(b, PyBUF_SIMPLE);
    const View result(out, PyBUF_WRITABLE);
    if (left.bytes() != result.bytes() || right.bytes() != result.bytes() || left.bytes() % element_bytes() != 0) {
      return formatted("operands of {} and {} bytes, and a result of {}", left.bytes(), right.bytes(), result.bytes());
    }
    return without_gil([&] {
      std::string why;
      op_->fold(left.data(), right.data(), result.data(), result.bytes() / element_bytes(), why);
      return why;
    });
  }

 private:
  std::shared_ptr<const handler::Operator> op_;
};

std::shared_ptr<driver::Communicator> communicator_at(std::uint64_t number) {
  return driver::communicator_of(driver::handle_of<unisono_communicator>(number));
}

/// Why the switches of a communicator do not have an operator; empty: they do.
std::string carry(std::uint64_t communicator, int func, const nb::bytes& binary, bool commutative) {
  return without_gil([&]() -> std::string {
    const auto own = communicator_at(communicator);
    const std::shared_ptr<driver::Endpoint> endpoint = own->context->endpoint();
    if (!endpoint->aggregation) return "its calls are not carried by switches";
    return endpoint->aggregation->load_operator(own->number, static_cast<Func>(func), bytes_of(binary), commutative);
  });
}

void carried(std::uint64_t communicator, int here, int at_switches, std::uint32_t element_bytes) {
  without_gil([&] {
    const auto own = communicator_at(communicator);
    const std::shared_ptr<driver::Endpoint> endpoint = own->context->endpoint();
    if (endpoint->aggregation) {
      endpoint->aggregation->add_operator(own->number, static_cast<Func>(here), static_cast<Func>(at_switches),
                                          element_bytes);
    }
    return true;
  });
}

}  // namespace

void bind_operators(nb::module_& module) {
  nb::class_<OperatorInC>(module, "OperatorInC", "A reduction operator of the user in C.")
      .def(nb::init<const nb::bytes&>(), nb::arg("binary"))
      .def_prop_ro("element_bytes", &OperatorInC::element_bytes)
      .def("create", &OperatorInC::create, nb::arg("name"), nb::arg("commutative"),
           "Defines it for calls; returns its number.")
      .def("fold", &OperatorInC::fold, nb::arg("a"), nb::arg("b"), nb::arg("out"),
           "out = a op b; why not, or nothing.");
  module.def("carry_operator", carry, nb::arg("communicator"), nb::arg("func"), nb::arg("binary"),
             nb::arg("commutative"),
             "By the first rank: has its switches fold by an operator; why they do not, or nothing.");
  module.def("operator_is_carried", carried, nb::arg("communicator"), nb::arg("here"), nb::arg("at_switches"),
             nb::arg("element_bytes"), "By all ranks: calls by an operator are carried from now on.");
}

}  // namespace unisono::python
