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
  // Bytes that are no UTF-8 are replaced once.
  const std::string quoted = cost::json::quoted(text);
  claim(cost::json::quoted(cost::json::parse(quoted).text()) == quoted, "a quoted string comes back");
  return 0;
}
