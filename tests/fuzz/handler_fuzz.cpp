// Binaries of handlers: what is refused says why, what is not is written as it was read, and ends in time. The checksum
// is put right, so that what lies behind it is reached.
#include <string>
#include <vector>

#include "core/error.hpp"
#include "switch/handler/binary.hpp"
#include "switch/handler/interpreter.hpp"
#include "switch/handler/operator.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

void execute(const handler::Program& program) {
  if (program.memory_bytes > 1U << 20U) return;  // the memory is the fuzzer's, too
  std::vector<std::byte> memory(program.memory_bytes);
  std::vector<std::byte> output(1000);
  const std::vector<std::byte> payload(100, std::byte{7});
  const handler::Code code(program);
  for (const handler::Function function : handler::kAllFunction) {
    const handler::Surroundings around{{100, 1, 2, 3, 4, 5}, payload, memory, output};
    constexpr std::uint64_t kBudget = 100000;
    const auto outcome = code.run(function, around, kBudget);
    claim(outcome.executed <= kBudget, "a handler keeps to its budget");
    claim(outcome.executed <= most_executed(program, function), "a handler ends when its bounds say");
    claim(outcome.output_bytes <= output.size(), "a handler keeps to its room");
  }
}

/// Whatever an operator's function does, operands are read and results written within their arrays.
void fold(std::span<const std::byte> binary) {
  if (binary.size() > handler::kMostOperatorBinary) return;
  const handler::Operator op(binary);
  const std::size_t count = 70;
  const std::vector<std::byte> a(count * op.element_bytes(), std::byte{3});
  std::vector<std::byte> b(a.size(), std::byte{5});
  std::string why;
  claim(op.fold(a.data(), b.data(), b.data(), count, why) == why.empty(), "who is stopped says why");
}

void parse(std::span<const std::byte> bytes) {
  try {
    const handler::Program program = handler::parse_binary(bytes);
    const auto again = handler::write_binary(program);
    claim(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()), "a binary is written as it was read");
    claim(!handler::text_of(program).empty(), "a binary has a text");
    execute(program);
    const bool ends_soon = most_executed(program, handler::Function::kPayload) < 100000;
    if (handler::operator_shape(program) && ends_soon) fold(bytes);
  } catch (const Error& error) {
    claim(error.code() == ErrorCode::kMalformedProgram, "a binary is refused as a malformed program");
    claim(std::string(error.what()).starts_with("handler: "), "the message says what is wrong with the binary");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto given = std::as_bytes(std::span(data, size));
  parse(given);
  if (size >= 4) parse(fuzz::sealed(given));
  return 0;
}
