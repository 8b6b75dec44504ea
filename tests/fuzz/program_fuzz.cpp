// Program files. The checksum is put right, so that what lies behind it is reached.
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/program_file.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

void parse(std::span<const std::byte> bytes) {
  try {
    const ProgramFile file = parse_program_file(bytes);
    const auto again = write_program_file(file);
    claim(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()), "a file is written as it was read");
  } catch (const Error& error) {
    claim(error.code() == ErrorCode::kMalformedProgram, "a file is refused as a malformed program");
    claim(std::string(error.what()).starts_with("program file: "), "the message says what is wrong with the file");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto given = std::as_bytes(std::span(data, size));
  parse(given);
  if (size >= 4) parse(fuzz::sealed(given));
  return 0;
}
