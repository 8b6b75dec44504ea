// Tuning files, and JSON as such.
#include <string>

#include "core/error.hpp"
#include "cost/json.hpp"
#include "cost/tuning_file.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const cost::TuningFile file = cost::parse_tuning(text);
    claim(cost::parse_tuning(cost::write_tuning(file)) == file,
          "a file that was read is written so that it comes back");
  } catch (const Error& error) {
    claim(error.code() == ErrorCode::kInvalidArgument, "a file is refused as an invalid argument");
  }
  // Control characters are left out of what is written.
  std::string printable;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t') printable += c;
  }
  claim(cost::json::parse(cost::json::quoted(text)).text() == printable, "a quoted string comes back");
  return 0;
}
