// Handlers in a switch, outside of one: their binaries, and the interpreter.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/error.hpp"
#include "core/text.hpp"
#include "python/core/module.hpp"
#include "python/core/without_gil.hpp"
#include "switch/handler/binary.hpp"
#include "switch/handler/interpreter.hpp"
#include "switch/handler/sentence.hpp"

namespace unisono::python {
namespace {

using handler::Program;

std::span<const std::byte> bytes_of(const nb::bytes& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()};
}

/// A binary, and the memory that its functions leave from run to run. One thread at a time.
class LoadedHandler {
 public:
  explicit LoadedHandler(const nb::bytes& binary)
      : program_(without_gil([&] { return handler::parse_binary(bytes_of(binary)); })), code_(program_) {
    reset();
    output_.resize(handler::kMostOutputBytes);
  }

  void reset() {
    memory_.assign(program_.memory_bytes, std::byte{0});
    std::transform(program_.data.begin(), program_.data.end(), memory_.begin(),
                   [](std::uint8_t byte) { return std::byte{byte}; });
  }
  nb::bytes memory() const { return nb::bytes(memory_.data(), memory_.size()); }
  const Program& program() const { return program_; }

  nb::tuple run(std::uint32_t function, const std::array<std::uint32_t, handler::kInfos>& info,
                const nb::bytes& payload, std::uint64_t budget) {
    if (function >= handler::kFunctions || payload.size() > handler::kMostPayloadBytes) {
      raise(ErrorCode::kInvalidArgument,
            formatted("function {} on a payload of {} bytes; allowed are functions 0 to 2, "
                      "and {} bytes",
                      function, payload.size(), handler::kMostPayloadBytes));
    }
    const handler::Surroundings around{info, bytes_of(payload), memory_, output_};
    const auto outcome = code_.run(static_cast<handler::Function>(function), around, budget);
    return nb::make_tuple(handler::sentence_of(program_, static_cast<handler::Function>(function), around, outcome),
                          outcome.verdict, outcome.executed, nb::bytes(output_.data(), outcome.output_bytes));
  }

 private:
  Program program_;
  handler::Code code_;
  std::vector<std::byte> memory_;
  std::vector<std::byte> output_;
};

nb::bytes write(const nb::bytes& words, const std::vector<std::uint32_t>& lines,
                const std::array<std::uint32_t, handler::kFunctions>& entries, std::uint32_t memory_bytes,
                const nb::bytes& data, const std::string& source) {
  Program program;
  const auto given = bytes_of(words);
  for (std::size_t at = 0; at + 8 <= given.size(); at += 8) {
    std::array<std::uint64_t, handler::kInstructionWords> word{};
    std::memcpy(word.data(), given.data() + at, 8);
    program.words.push_back(handler::decode_instruction(word));
  }
  program.lines = lines;
  program.entries = entries;
  program.memory_bytes = memory_bytes;
  const auto begin = bytes_of(data);
  std::transform(begin.begin(), begin.end(), std::back_inserter(program.data),
                 [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  program.source = source;
  const auto binary = without_gil([&] { return handler::write_binary(program); });
  return nb::bytes(binary.data(), binary.size());
}

}  // namespace

void bind_handler(nb::module_& module) {
  nb::class_<LoadedHandler>(module, "Handler", "A handler's binary with its memory; one thread at a time.")
      .def(nb::init<const nb::bytes&>(), nb::arg("binary"))
      .def("reset", &LoadedHandler::reset, "Makes the memory what it was at the beginning.")
      .def("memory", &LoadedHandler::memory, "A copy of the memory.")
      .def(
          "text", [](const LoadedHandler& self) { return handler::text_of(self.program()); },
          "The instructions, a line each.")
      .def_prop_ro("entries", [](const LoadedHandler& self) { return self.program().entries; })
      .def_prop_ro("words", [](const LoadedHandler& self) { return self.program().words.size(); })
      .def_prop_ro("lines", [](const LoadedHandler& self) { return self.program().lines; })
      .def_prop_ro("source", [](const LoadedHandler& self) { return self.program().source; })
      .def_prop_ro("elements", [](const LoadedHandler& self) { return handler::elements_of(self.program()); })
      .def(
          "most_executed",
          [](const LoadedHandler& self, std::uint32_t function) {
            return handler::most_executed(self.program(),
                                          static_cast<handler::Function>(function % handler::kFunctions));
          },
          nb::arg("function"), "Instructions that a function executes at most.")
      .def("run", &LoadedHandler::run, nb::arg("function"), nb::arg("info"), nb::arg("payload"), nb::arg("budget"),
           "Runs a function: why it was stopped or fails (or nothing), verdict, instructions executed, output.");
  module.def("write_handler", write, nb::arg("words"), nb::arg("lines"), nb::arg("entries"), nb::arg("memory_bytes"),
             nb::arg("data"), nb::arg("source"), "The binary of a handler, once it has passed the loader's checks.");
}

}  // namespace unisono::python
